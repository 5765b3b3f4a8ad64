// Copies, and tensors filled with a number.
#include "elementwise.cuh"

constexpr int TILE = 32;

// Whether x, as a matrix or a batch of them, is column-major while the output is row-major.
template <typename T>
__device__ inline bool transposed(const Input<T> &x, const View &out_view) {
    const long long dims = x.view.ndim;
    return x.x != nullptr && (dims == 2 || dims == 3) && x.view.stride[dims - 2] == 1 && out_view.ndim == 1 &&
           out_view.stride[0] == 1;
}

// Writes a transposed matrix row by row. Adjacent threads read best down a column and write best along a row,
// so a block reads a 32 × 32 tile in the order of the input, keeps it in shared memory, and writes it in the
// order of the output. Shared memory has 32 banks, each of which serves one request at a time: with 32 elements
// per row, a column would lie in a single bank. With one element more, each row starts one bank later.
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
        __syncthreads(); // The next tile overwrites this one.
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

// The integer, or the float in a floating-point tensor. Integers wrap around: −1 becomes 255 in a u8.
#define FILL(operation, suffix, T)                                                                      \
    extern "C" __global__ void operation##_##suffix(OUTPUT(T, out), long long whole, double fraction) { \
        const T value = is_float<T> ? (calculated<T>)fraction : (calculated<T>)whole;                   \
        elementwise([=]() { return value; }, out, out_view);                                            \
    }

FOR_NUMBERS(FILL, fill)
