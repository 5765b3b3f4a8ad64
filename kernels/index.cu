// Indexing with an index tensor: index_select and gather; and accumulating: index_add, scatter_add. A negative
// index, which counts from the end, is brought into bounds by remainder.
//
// All tensors are contiguous. An index out of bounds fails an assertion, as in PyTorch: the host does not know
// the indices, and the memory there belongs to other tensors.
#include "elementwise.cuh"
#include "tree.cuh"

namespace element {

// A remainder with the sign of b, as in Python, for positive b. C++ uses the sign of a.
__device__ inline long long remainder(long long a, long long b) {
    const long long rest = a % b;
    return rest < 0 ? rest + b : rest;
}

} // namespace element

BINARY(remainder, i64, long long)

__device__ inline long long checked(long long index, long long size) {
    assert(index >= 0 && index < size && "index out of bounds");
    return index;
}

// The number of elements per index of dimension `dim`.
__device__ inline long long inner_elements(const View &view, long long dim) {
    long long inner = 1;
#pragma unroll 1
    for (long long i = dim + 1; i < view.ndim; i++) {
        inner *= view.size[i];
    }
    return inner;
}

// The slices of a dimension that the indices select, in order.
template <typename T>
__device__ void index_select(const T *x, const View &x_view, const long long *index, T *out, const View &out_view,
                             long long dim) {
    const long long inner = inner_elements(x_view, dim);
    const long long size = x_view.size[dim], chosen = out_view.size[dim];
    const long long n = elements(out_view);
    for (long long i = first_element(); i < n; i += all_threads()) {
        const long long entry = checked(index[i / inner % chosen], size);
        out[i] = x[(i / inner / chosen * size + entry) * inner + i % inner];
    }
}

// The target gathers the sums. If instead each element of the source added itself with `atomicAdd`, each index
// would be read only once, but the order of the threads would be arbitrary, and floating-point sums would
// differ from run to run. So a warp takes some slices of the target's dimension, and searches all indices for
// their numbers, 32 at a time. One step of a warp compares 32 indices with 32 slices (or, if a slice has many
// elements, with that slice, for all of them): a thread per element that searched the indices alone would take
// 32 times as many steps. Slices without an index are neither read nor written.

// Calls `add(j, entry)`, with all lanes of the warp, for each j of the `count` indices whose value is at least
// `first` and less than `last`: in the order of j, which determines the order of each sum.
template <typename Add>
__device__ void for_matches(const long long *index, long long step, long long count, long long size, long long first,
                            long long last, Add add) {
    const int lane = threadIdx.x % LANES;
    for (long long start = 0; start < count; start += LANES) {
        const long long mine = start + lane < count ? checked(index[(start + lane) * step], size) : -1;
        unsigned int matches = __ballot_sync(ALL_LANES, mine >= first && mine < last);
        for (; matches != 0; matches &= matches - 1) { // Clears the lowest bit.
            const int from = __ffs(matches) - 1;
            add(start + from, from_lane(mine, from));
        }
    }
}

// The number of this warp, and of all warps, for a grid-stride loop over warps.
__device__ inline long long first_warp() { return first_element() / LANES; }
__device__ inline long long all_warps() { return all_threads() / LANES; }

// Adds slice j of the source to slice index[j] of the target. An element of a slice is always handled by the
// same lane, so each lane reads only values that it has written itself.
template <typename T>
__device__ void index_add(const T *source, const long long *index, const View &index_view, T *out,
                          const View &out_view, long long dim) {
    const long long inner = inner_elements(out_view, dim);
    const long long size = out_view.size[dim], added = elements(index_view);
    const long long taken = inner < LANES ? LANES / inner : 1; // slices per warp
    const long long warps = divide_up(size, taken);            // for all slices
    const long long all = elements(out_view) / (size * inner) * warps;
    for (long long w = first_warp(); w < all; w += all_warps()) {
        const long long outer = w / warps, first = w % warps * taken;
        for_matches(index, 1, added, size, first, first + taken, [&](long long j, long long entry) {
            T *to = out + (outer * size + entry) * inner;
            const T *from = source + (outer * added + j) * inner;
            for (long long i = threadIdx.x % LANES; i < inner; i += LANES) {
                to[i] = Sum::combine(to[i], from[i]);
            }
        });
    }
}

// Each element of the result is the element of x with the same coordinates, except in dimension `dim`, where
// the index gives the coordinate.
template <typename T>
__device__ void gather(const T *x, const View &x_view, const long long *index, const View &index_view, T *out,
                       long long dim) {
    const long long n = elements(index_view);
    for (long long i = first_element(); i < n; i += all_threads()) {
        long long rest = i, from = 0, step = 1;
#pragma unroll 1
        for (int d = (int)x_view.ndim - 1; d >= 0; d--) {
            from += step * (d == dim ? checked(index[i], x_view.size[d]) : rest % index_view.size[d]);
            rest /= index_view.size[d];
            step *= x_view.size[d];
        }
        out[i] = x[from];
    }
}

// The reverse: adds each element of the source, which has the shape of the index, at the position that the
// index gives. Along `dim` there are lines of indices, each for a line of the target; a warp takes 32 elements
// of such a line, one per lane.
template <typename T>
__device__ void scatter_add(const T *source, const long long *index, const View &index_view, T *out,
                            const View &out_view, long long dim) {
    const long long size = out_view.size[dim], added = index_view.size[dim];
    const long long index_step = inner_elements(index_view, dim), out_step = inner_elements(out_view, dim);
    const long long warps = divide_up(size, LANES); // per line
    const long long all = added == 0 ? 0 : elements(index_view) / added * warps;
    for (long long w = first_warp(); w < all; w += all_warps()) {
        const long long line = w / warps, first = w % warps * LANES;
        // The start of the line in the index, and in the target, which may be larger.
        const long long start = line / index_step * added * index_step + line % index_step;
        long long rest = line, out_start = 0, step = 1;
#pragma unroll 1
        for (int d = (int)out_view.ndim - 1; d >= 0; d--) {
            if (d != dim) {
                out_start += step * (rest % index_view.size[d]);
                rest /= index_view.size[d];
            }
            step *= out_view.size[d];
        }
        T *mine = out + out_start + (first + threadIdx.x % LANES) * out_step;
        for_matches(index + start, index_step, added, size, first, first + LANES, [&](long long j, long long entry) {
            if (entry - first == threadIdx.x % LANES) {
                *mine = Sum::combine(*mine, source[start + j * index_step]);
            }
        });
    }
}

#define INDEX(name, suffix, T, ...)                                                                        \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), INPUT(long long, index), OUTPUT(T, out),       \
                                               long long dim) {                                            \
        name(__VA_ARGS__);                                                                                 \
    }

#define INDEXING(name, suffix, T)                                                     \
    INDEX(index_select, suffix, T, x, x_view, index, out, out_view, dim)              \
    INDEX(index_add, suffix, T, x, index, index_view, out, out_view, dim)             \
    INDEX(gather, suffix, T, x, x_view, index, index_view, out, dim)                  \
    INDEX(scatter_add, suffix, T, x, index, index_view, out, out_view, dim)

FOR_NUMBERS(INDEXING, index)
