// Choosing elements by an index tensor: index_select and gather; and adding to them: index_add, scatter_add.
//
// All tensors lie in order. An index out of bounds ends the program with an assertion, as in PyTorch: the host does
// not know the indices, and what lies there belongs to somebody else.
#include "common.cuh"

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

// Adds entry j of the source to entry index[j] of the target.
//
// A thread takes an element of the target and looks for what is added to it. The other way round, each element of the
// source adding itself by `atomicAdd`, would read each index once, but in whatever order the threads come: floating
// point sums would differ from run to run. All threads read the same indices, from the cache.
template <typename T>
__device__ void index_add(const T *source, const long long *index, const View &index_view, T *out,
                          const View &out_view, long long dim) {
    const long long inner = inner_elements(out_view, dim);
    const long long size = out_view.size[dim], added = elements(index_view);
    const long long n = elements(out_view);
    for (long long i = first_element(); i < n; i += all_threads()) {
        const long long entry = i / inner % size;
        const T *from = source + i / inner / size * added * inner + i % inner;
        T sum = out[i];
        for (long long j = 0; j < added; j++) {
            if (checked(index[j], size) == entry) {
                sum = (T)((wrapping<T>)sum + (wrapping<T>)from[j * inner]);
            }
        }
        out[i] = sum;
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

// The reverse: adds each element of the source, which is as large as the index, where the index says. Again a thread
// looks for what is added to its element of the target, in order.
template <typename T>
__device__ void scatter_add(const T *source, const long long *index, const View &index_view, T *out,
                            const View &out_view, long long dim) {
    const long long size = out_view.size[dim], added = index_view.size[dim];
    const long long index_step = inner_elements(index_view, dim);
    const long long n = elements(out_view);
    for (long long i = first_element(); i < n; i += all_threads()) {
        // Of the index, the elements with the same coordinates but in dimension `dim`, if it is so large.
        long long rest = i, first = 0, step = 1, entry = 0;
        bool inside = true;
#pragma unroll 1
        for (int d = (int)out_view.ndim - 1; d >= 0; d--) {
            const long long coordinate = rest % out_view.size[d];
            if (d == dim) {
                entry = coordinate;
            } else {
                inside = inside && coordinate < index_view.size[d];
                first += step * coordinate;
            }
            rest /= out_view.size[d];
            step *= index_view.size[d];
        }
        if (inside) {
            T sum = out[i];
            for (long long j = first; j < first + added * index_step; j += index_step) {
                if (checked(index[j], size) == entry) {
                    sum = (T)((wrapping<T>)sum + (wrapping<T>)source[j]);
                }
            }
            out[i] = sum;
        }
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
