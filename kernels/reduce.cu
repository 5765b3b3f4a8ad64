// Reductions of rows: sum, amax, amin; and the positions of the extremes: argmax, argmin.
#include "convert.cuh"
#include "tree.cuh"

// A NaN persists once found. Only a NaN differs from itself.
struct Largest {
    template <typename T> static __device__ T nothing() {
        if constexpr (is_float<T>) {
            return -infinity<T>();
        } else {
            return Range<T>::low;
        }
    }
    template <typename T> static __device__ T combine(T a, T b) { return b > a || b != b ? b : a; }
};
struct Smallest {
    template <typename T> static __device__ T nothing() {
        if constexpr (is_float<T>) {
            return infinity<T>();
        } else {
            return Range<T>::high;
        }
    }
    template <typename T> static __device__ T combine(T a, T b) { return b < a || b != b ? b : a; }
};

// The result of `count` elements of x from `start`, in row-major order, computed by one warp.
template <typename Operation, typename T>
__device__ __noinline__ calculated<T> strided_chunk(int count, const T *x, const View &view, long long start) {
    return chunk<Operation, calculated<T>>(count, [&](int i) { return x[position(view, start + i)]; });
}
template <typename Operation, typename T>
__device__ calculated<T> chunk_of(int count, const T *x, const View &view, bool in_order, long long start) {
    return in_order ? chunk_in_order<Operation>(count, x + start) : strided_chunk<Operation>(count, x, view, start);
}

// Whether the rows are the columns of a matrix, whose neighbours in memory belong to neighbouring results: the
// gradient of a bias is such a sum.
__device__ inline bool are_columns(const View &view, long long length) {
    return view.ndim == 2 && view.size[1] == length && view.stride[0] == 1 && view.stride[1] > 1;
}

// Each column is handled by the block that owns it, one chunk after another.
template <typename Operation, typename T, typename C>
__device__ void reduce_columns(Levels<C> &levels, const T *x, const View &x_view, T *out, const View &out_view,
                               long long length) {
    const long long step = x_view.stride[1];
    const int chunks = (int)divide_up(length, CHUNK);
    for (long long first = (long long)blockIdx.x * LANES; first < x_view.size[0];
         first += (long long)gridDim.x * LANES) {
        const int columns = in_block(x_view.size[0], first);
        C *const column = levels.groups + threadIdx.x;
        for (int c = 0; c < chunks; c++) {
            const long long start = (long long)c * CHUNK;
            const T *corner = x + start * step + first;
            const C result = chunk_of_columns<Operation>(levels.chunks, columns, in_chunk(length - start),
                                                         [=](int row, int i) { return (C)corner[row * step + i]; });
            if (threadIdx.x < columns) {
                column[c * columns] = result;
            }
        }
        if (threadIdx.x < columns) {
            out[position(out_view, first + threadIdx.x)] = lanes_together<Operation>(column, columns, chunks);
        }
    }
}

// One result per row. The rows of `x` are its first dimensions, and each row has `length` elements.
template <typename Operation, typename T>
__device__ void reduce_rows(const T *x, const View &x_view, T *out, const View &out_view, long long length) {
    __shared__ Levels<calculated<T>> levels;
    // The results of 32 chunks of 32 columns are the maximum that fits in the memory of the levels.
    if (are_columns(x_view, length) && length > 0 && length <= LANES * CHUNK) {
        reduce_columns<Operation>(levels, x, x_view, out, out_view, length);
        return;
    }
    const bool in_order = contiguous(x_view);
    for_rows(levels, elements(out_view), length, [&](long long row, auto threads) {
        const calculated<T> result = threads.template reduce_chunks<Operation>(length, [&](long long start, int count) {
            return chunk_of<Operation>(count, x, x_view, in_order, row * length + start);
        });
        if (threads.first() == 0) {
            out[position(out_view, row)] = result;
        }
    });
}

// The same for few long rows: with one block per row, most of the GPU would be idle. So a warp reduces a chunk
// of any row, or a block the chunks of 32 columns, and a second launch, of the kernel above, combines the
// results of each row's chunks. For halves, they stay floats in between.
template <typename Operation, typename T, typename C>
__device__ void reduce_chunks(const T *x, const View &x_view, C *out, const View &out_view, long long length) {
    const long long chunks = divide_up(length, CHUNK);
    if (are_columns(x_view, length)) {
        __shared__ C lanes[CHUNK];
        const long long step = x_view.stride[1];
        const long long blocks = divide_up(x_view.size[0], LANES); // per chunk of all columns
        for (long long i = blockIdx.x; i < blocks * chunks; i += gridDim.x) {
            const long long c = i / blocks, start = c * CHUNK, first = i % blocks * LANES;
            const int columns = in_block(x_view.size[0], first);
            const T *corner = x + start * step + first;
            const C result = chunk_of_columns<Operation>(lanes, columns, in_chunk(length - start),
                                                         [=](int row, int i) { return (C)corner[row * step + i]; });
            if (threadIdx.x < columns) {
                out[position(out_view, (first + threadIdx.x) * chunks + c)] = result;
            }
        }
        return;
    }
    const bool in_order = contiguous(x_view);
    const long long warps = (long long)gridDim.x * (blockDim.x / LANES);
    const long long first = (long long)blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES;
    for (long long c = first; c < elements(out_view); c += warps) {
        const long long start = c % chunks * CHUNK;
        const C result =
            chunk_of<Operation>(in_chunk(length - start), x, x_view, in_order, c / chunks * length + start);
        if (threadIdx.x % LANES == 0) {
            out[position(out_view, c)] = result;
        }
    }
}

#define REDUCE(name, Operation, suffix, T)                                                                 \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), OUTPUT(T, out), long long length) {            \
        reduce_rows<Operation>(x, x_view, out, out_view, length);                                            \
    }                                                                                                      \
    extern "C" __global__ void name##_chunks_##suffix(INPUT(T, x), OUTPUT(calculated<T>, out),             \
                                                      long long length) {                              \
        reduce_chunks<Operation>(x, x_view, out, out_view, length);                                          \
    }

FOR_FLOATS(REDUCE, sum, Sum)
REDUCE(sum, Sum, i64, long long) // Smaller integers are summed as i64.
FOR_NUMBERS(REDUCE, amax, Largest)
FOR_NUMBERS(REDUCE, amin, Smallest)

// An element and its position in the row.
template <typename T> struct Found {
    T value;
    long long at;
};

template <typename T>
__device__ inline Found<T> from_lane(Found<T> found, int lane) {
    return {from_lane(found.value, lane), from_lane(found.at, lane)};
}
template <typename T>
__device__ inline Found<T> from_lane_further_on(Found<T> found, int lanes) {
    return {from_lane_further_on(found.value, lanes), from_lane_further_on(found.at, lanes)};
}

// The better of two: a NaN beats every number, and of equal ones the first wins. So the order of comparisons
// does not matter.
template <bool LARGEST> struct First {
    template <typename T> static __device__ Found<T> combine(Found<T> a, Found<T> b) {
        const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
        if (a_nan != b_nan) {
            return a_nan ? a : b;
        }
        if (!a_nan && a.value != b.value) {
            return (a.value > b.value) == LARGEST ? a : b;
        }
        return a.at < b.at ? a : b;
    }
    // A row is never empty, and lanes without elements are skipped.
    template <typename F> static __device__ F nothing() { return {0, 0}; }
};

template <bool LARGEST, typename T, typename C = calculated<T>>
__device__ __noinline__ Found<C> find_in_chunk(int count, const T *x, const View &view, bool in_order,
                                               long long row_start, long long start) {
    return chunk<First<LARGEST>, Found<C>>(count, [&](int i) {
        const long long at = row_start + start + i;
        return Found<C>{x[in_order ? at : position(view, at)], start + i};
    });
}

template <bool LARGEST, typename T, typename C = calculated<T>>
__device__ void find_in_rows(const T *x, const View &x_view, long long *out, const View &out_view, long long length) {
    __shared__ Levels<Found<C>> levels;
    const bool in_order = contiguous(x_view);
    for_rows(levels, elements(out_view), length, [&](long long row, auto threads) {
        const Found<C> found =
            threads.template reduce_chunks<First<LARGEST>>(length, [&](long long start, int count) {
                return find_in_chunk<LARGEST>(count, x, x_view, in_order, row * length, start);
            });
        if (threads.first() == 0) {
            out[position(out_view, row)] = found.at;
        }
    });
}

#define FIND(name, LARGEST, suffix, T)                                                                      \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), OUTPUT(long long, out), long long length) {     \
        find_in_rows<LARGEST>(x, x_view, out, out_view, length);                                              \
    }

FOR_NUMBERS(FIND, argmax, true)
FOR_NUMBERS(FIND, argmin, false)
