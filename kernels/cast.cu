// Copies: to another place in memory, or to another type.
#include "convert.cuh"
#include "elementwise.cuh"

constexpr int TILE = 32;

// Whether x, seen as a matrix or a batch of them, lies column by column, while the output lies row by row.
template <typename T>
__device__ inline bool transposed(const Input<T> &x, const View &out_view) {
    const long long dims = x.view.ndim;
    return x.x != nullptr && (dims == 2 || dims == 3) && x.view.stride[dims - 2] == 1 && out_view.ndim == 1 &&
           out_view.stride[0] == 1;
}

// Writes a transposed matrix row by row. Threads side by side read best down a column and write best along a row, so a
// block reads a square of 32 × 32 its way, keeps it in shared memory, and writes it the other way. Shared memory is
// in 32 banks, which serve one request each at a time: with 32 elements to a row, a column would be all
// in one bank. With one more the next row begins a bank further on.
template <typename T>
__device__ void transpose(const T *x, const View &view, T *out) {
    __shared__ T tile[TILE][TILE + 1];
    const int last = (int)view.ndim - 1;
    const long long rows = view.size[last - 1], columns = view.size[last], step = view.stride[last];
    const long long down = (rows + TILE - 1) / TILE, across = (columns + TILE - 1) / TILE;
    const long long tiles = (last == 2 ? view.size[0] : 1) * down * across;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (long long i = blockIdx.x; i < tiles; i += gridDim.x) {
        const long long matrix = i / (down * across);
        const long long row = i / across % down * TILE, column = i % across * TILE;
        const T *from = x + (last == 2 ? matrix * view.stride[0] : 0);
        T *to = out + matrix * rows * columns;
        for (int j = warp; j < TILE; j += warps) {
            if (row + lane < rows && column + j < columns) {
                tile[j][lane] = from[row + lane + (column + j) * step];
            }
        }
        __syncthreads();
        for (int j = warp; j < TILE; j += warps) {
            if (row + j < rows && column + lane < columns) {
                to[(row + j) * columns + column + lane] = tile[lane][j];
            }
        }
        __syncthreads(); // The next tile is written over this one.
    }
}

#define COPY(operation, suffix, T)                                                  \
    extern "C" __global__ void operation##_##suffix(INPUT(T, x), OUTPUT(T, out)) {  \
        if (transposed(READ(x), out_view)) {                                        \
            transpose(x, x_view, out);                                              \
        } else {                                                                    \
            elementwise([](T x) { return x; }, out, out_view, READ(x));             \
        }                                                                           \
    }

FOR_NUMBERS(COPY, copy)

// cast_f32_i64(const float *x, float x_value, View x_view, long long *out, View out_view)
#define CAST(from, From, to, To)                                                          \
    extern "C" __global__ void cast_##from##_##to(INPUT(From, x), OUTPUT(To, out)) {      \
        elementwise([](calculated<From> x) { return convert<calculated<To>>(x); }, out, out_view, READ(x)); \
    }

CAST(f32, float, f64, double)
CAST(f32, float, i64, long long)
CAST(f32, float, i32, int)
CAST(f32, float, u8, unsigned char)

CAST(f64, double, f32, float)
CAST(f64, double, i64, long long)
CAST(f64, double, i32, int)
CAST(f64, double, u8, unsigned char)

CAST(i64, long long, f32, float)
CAST(i64, long long, f64, double)
CAST(i64, long long, i32, int)
CAST(i64, long long, u8, unsigned char)

CAST(i32, int, f32, float)
CAST(i32, int, f64, double)
CAST(i32, int, i64, long long)
CAST(i32, int, u8, unsigned char)

// A truth is a byte too, so this is also how it becomes a number.
CAST(u8, unsigned char, f32, float)
CAST(u8, unsigned char, f64, double)
CAST(u8, unsigned char, i64, long long)
CAST(u8, unsigned char, i32, int)
CAST(u8, unsigned char, u8, unsigned char)

// A half is a float on its way to another type, and what becomes a half is one before: a double is rounded twice, as
// by PyTorch.
#define CAST_TO_HALVES(_, from, From) \
    CAST(from, From, f16, f16)        \
    CAST(from, From, bf16, bf16)

CAST_TO_HALVES(, f32, float)
CAST_TO_HALVES(, f64, double)
FOR_INTEGERS(CAST_TO_HALVES, )
CAST(f16, f16, bf16, bf16)
CAST(bf16, bf16, f16, f16)

#define CAST_OF_HALVES(_, from, From)  \
    CAST(from, From, f32, float)       \
    CAST(from, From, f64, double)      \
    CAST(from, From, i64, long long)   \
    CAST(from, From, i32, int)         \
    CAST(from, From, u8, unsigned char)

FOR_HALVES(CAST_OF_HALVES, )

// Everything but 0 is true, a NaN too.
#define TRUTH(operation, suffix, T)                                                            \
    extern "C" __global__ void operation##_##suffix(INPUT(T, x), OUTPUT(unsigned char, out)) { \
        elementwise([](calculated<T> x) -> unsigned char { return x != 0; }, out, out_view, READ(x)); \
    }

FOR_NUMBERS(TRUTH, truth)
