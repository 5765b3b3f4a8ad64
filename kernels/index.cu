// Choosing elements by an index tensor: index_select and gather; and adding to them: index_add, scatter_add. An index
// that counts from the end is brought into bounds by remainder.
//
// All tensors lie in order. An index out of bounds ends the program with an assertion, as in PyTorch: the host does
// not know the indices, and what lies there belongs to somebody else.
#include "elementwise.cuh"
#include "tree.cuh"

namespace element {

// Of the sign of b, as Python has it, for a b above 0. C++ has that of a.
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

// How many elements there are to an entry of dimension `dim`.
__device__ inline long long inner_elements(const View &view, long long dim) {
    long long inner = 1;
#pragma unroll 1
    for (long long i = dim + 1; i < view.ndim; i++) {
        inner *= view.size[i];
    }
    return inner;
}

// The entries of a dimension that the indices name, in their order.
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

// Adding is done by the target. The other way round, each element of the source adding itself by `atomicAdd`, would
// read each index once, but in whatever order the threads come: floating point sums would differ from run to run. So a
// warp takes some entries of the target's dimension, and looks for their numbers among all indices, 32 at a time. One
// step of a warp compares 32 indices with 32 entries (or, where an entry has many elements, with that entry, for all of
// them): a thread for each element that walked along the indices by itself would take 32 times as many steps. Entries
// that no index names are neither read nor written.

// Calls `add(j, entry)`, with all lanes of the warp, for those of `count` indices that name an entry from `first` to
// before `last`: in the order of the indices, which is the order of each sum.
template <typename Add>
__device__ void for_matches(const long long *index, long long step, long long count, long long size, long long first,
                            long long last, Add add) {
    const int lane = threadIdx.x % LANES;
    for (long long start = 0; start < count; start += LANES) {
        const long long mine = start + lane < count ? checked(index[(start + lane) * step], size) : -1;
        unsigned int matches = __ballot_sync(ALL_LANES, mine >= first && mine < last);
        for (; matches != 0; matches &= matches - 1) { // The lowest bit goes out.
            const int from = __ffs(matches) - 1;
            add(start + from, from_lane(mine, from));
        }
    }
}

// Which warp this is, and how many there are: for a loop like that over elements.
__device__ inline long long first_warp() { return first_element() / LANES; }
__device__ inline long long all_warps() { return all_threads() / LANES; }

// Adds entry j of the source to entry index[j] of the target. An element of an entry is always the same lane's, so
// each lane finds in memory what it has written itself.
template <typename T>
__device__ void index_add(const T *source, const long long *index, const View &index_view, T *out,
                          const View &out_view, long long dim) {
    const long long inner = inner_elements(out_view, dim);
    const long long size = out_view.size[dim], added = elements(index_view);
    const long long taken = inner < LANES ? LANES / inner : 1; // entries by a warp
    const long long warps = divide_up(size, taken);            // for all entries
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

// Each element of the result is one of x: that with the same coordinates, but in dimension `dim`, where it has the
// index.
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

// The reverse: adds each element of the source, which is as large as the index, where the index says. Along `dim` lie
// lines of indices, each for a line of the target; a warp takes 32 entries of such a line, one for each lane.
template <typename T>
__device__ void scatter_add(const T *source, const long long *index, const View &index_view, T *out,
                            const View &out_view, long long dim) {
    const long long size = out_view.size[dim], added = index_view.size[dim];
    const long long index_step = inner_elements(index_view, dim), out_step = inner_elements(out_view, dim);
    const long long warps = divide_up(size, LANES); // for a line
    const long long all = added == 0 ? 0 : elements(index_view) / added * warps;
    for (long long w = first_warp(); w < all; w += all_warps()) {
        const long long line = w / warps, first = w % warps * LANES;
        // Where the line starts in the index, and in the target, which may be larger.
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
