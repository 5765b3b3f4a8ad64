// Reductions of rows: sum, amax, amin; and where the largest or the smallest is: argmax, argmin.
#include "convert.cuh"
#include "tree.cuh"

// A NaN, once met, stays. Only a NaN differs from itself.
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

// In no order there is nothing to gain from having this in the program more than once.
template <typename T>
__device__ __noinline__ T strided(const T *x, const View &view, long long index) {
    return x[position(view, index)];
}

// The elements of x, seen as rows: its first dimensions are the rows, the others their elements. Where they lie in
// order, there is no need to look for each by division.
template <typename T, typename Use>
__device__ void with_elements(const T *x, const View &view, Use use) {
    if (contiguous(view)) {
        use([&](long long index) { return x[index]; });
    } else {
        use([&](long long index) { return strided(x, view, index); });
    }
}

// One result for each row.
template <typename Operation, typename T>
__device__ void reduce_rows(const T *x, const View &x_view, T *out, const View &out_view, long long length) {
    with_elements(x, x_view, [&](auto element) {
        for_rows<T>(elements(out_view), length, [&](long long row, auto threads) {
            const T result = threads.template reduce<Operation>(
                length, [&](long long i) { return element(row * length + i); });
            if (threads.first() == 0) {
                out[position(out_view, row)] = result;
            }
        });
    });
}

// The same for rows that are long and few: one block each would leave most of the GPU idle. So a warp reduces a chunk,
// whatever row it belongs to, and a second launch, of the kernel above, combines the chunks' results of each row.
template <typename Operation, typename T>
__device__ void reduce_chunks(const T *x, const View &x_view, T *out, const View &out_view, long long length) {
    const long long chunks = divide_up(length, CHUNK);
    const long long warps = (long long)gridDim.x * (blockDim.x / LANES);
    const long long first = (long long)blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES;
    with_elements(x, x_view, [&](auto element) {
        for (long long c = first; c < elements(out_view); c += warps) {
            const long long start = c % chunks * CHUNK;
            const T result = chunk<Operation, T>(in_chunk(length - start), [&](int j) {
                return element(c / chunks * length + start + j);
            });
            if (threadIdx.x % LANES == 0) {
                out[position(out_view, c)] = result;
            }
        }
    });
}

#define REDUCE(name, Operation, suffix, T)                                                                 \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), OUTPUT(T, out), long long length) {            \
        reduce_rows<Operation>(x, x_view, out, out_view, length);                                            \
    }                                                                                                      \
    extern "C" __global__ void name##_chunks_##suffix(INPUT(T, x), OUTPUT(T, out), long long length) {     \
        reduce_chunks<Operation>(x, x_view, out, out_view, length);                                          \
    }

FOR_FLOATS(REDUCE, sum, Sum)
REDUCE(sum, Sum, i64, long long) // Smaller integers are summed as these.
FOR_NUMBERS(REDUCE, amax, Largest)
FOR_NUMBERS(REDUCE, amin, Smallest)

// An element and where in its row it is.
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

// The better of two: a NaN beats every number, and of equal ones the first counts. So the order in which elements are
// compared does not matter.
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
    // A row has an element, and lanes without one take no part.
    template <typename F> static __device__ F nothing() { return {0, 0}; }
};

template <bool LARGEST, typename T>
__device__ void find_in_rows(const T *x, const View &x_view, long long *out, const View &out_view, long long length) {
    with_elements(x, x_view, [&](auto element) {
        for_rows<Found<T>>(elements(out_view), length, [&](long long row, auto threads) {
            const Found<T> found = threads.template reduce<First<LARGEST>>(
                length, [&](long long i) { return Found<T>{element(row * length + i), i}; });
            if (threads.first() == 0) {
                out[position(out_view, row)] = found.at;
            }
        });
    });
}

#define FIND(name, LARGEST, suffix, T)                                                                      \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), OUTPUT(long long, out), long long length) {     \
        find_in_rows<LARGEST>(x, x_view, out, out_view, length);                                              \
    }

FOR_NUMBERS(FIND, argmax, true)
FOR_NUMBERS(FIND, argmin, false)
