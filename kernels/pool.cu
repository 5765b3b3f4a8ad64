// Pooling: the maximum or the mean of each window of a plane; and the gradients.
//
// All tensors are contiguous planes (planes, height, width). Each thread computes one element of the output.
// That also holds for a gradient: the thread of an image element finds the windows that cover it, and adds them
// in order. If instead each window added to its elements with `atomicAdd`, sums would differ from run to run.
#include "common.cuh"
#include "convert.cuh"
#include "windows.cuh"

// Windows that cover a dimension of any size (adaptive pooling).
struct Adaptive {
    long long size, count;

    __device__ long long first(long long o) const { return o * size / count; }
    __device__ long long end(long long o) const { return ((o + 1) * size + count - 1) / count; }
    __device__ long long elements(long long o) const { return end(o) - first(o); }

    // From an element's point of view the formula is the same with the roles exchanged.
    __device__ long long first_over(long long i) const { return i * count / size; }
    __device__ long long end_over(long long i) const { return ((i + 1) * count + size - 1) / size; }
};

// Calls `work(i, plane, row, column)` for each element of the planes.
template <typename Work>
__device__ void for_elements(const View &planes, Work work) {
    const long long n = elements(planes), rows = planes.size[1], columns = planes.size[2];
    for (long long i = first_element(); i < n; i += all_threads()) {
        const long long line = i / columns;
        work(i, line / rows, line % rows, i % columns);
    }
}

// The maximum of an empty window.
template <typename T> __device__ T nothing() {
    if constexpr (is_float<T>) {
        return -infinity<T>();
    } else {
        return Range<T>::low;
    }
}

// The maximum of each window, and its position in the plane: the first one if several are equal, but a NaN
// takes precedence; −1 for a window of padding only.
template <typename T>
__device__ void max_pool2d(const T *x, T *out, const View &out_view, int *index, Windows down, Windows across) {
    for_elements(out_view, [=](long long i, long long plane, long long row, long long column) {
        const T *image = x + plane * down.size * across.size;
        calculated<T> largest = nothing<calculated<T>>();
        int at = -1;
        for (long long ky = 0; ky < down.kernel; ky++) {
            const long long y = down.element(row, ky);
            for (long long kx = 0; kx < across.kernel; kx++) {
                const long long x = across.element(column, kx);
                if (down.inside(y) && across.inside(x)) {
                    const calculated<T> value = image[y * across.size + x];
                    // Only a NaN differs from itself.
                    if (value > largest || value != value || at < 0) {
                        largest = value;
                        at = (int)(y * across.size + x);
                    }
                }
            }
        }
        out[i] = largest;
        index[i] = at;
    });
}

template <typename T>
__device__ void max_pool2d_backward(const T *grad, const int *index, T *grad_x, const View &grad_x_view, Windows down,
                                    Windows across) {
    for_elements(grad_x_view, [=](long long i, long long plane, long long row, long long column) {
        const int here = (int)(row * across.size + column);
        calculated<T> sum = 0;
        for (long long oy = down.first_over(row); oy < down.end_over(row); oy++) {
            for (long long ox = across.first_over(column); ox < across.end_over(column); ox++) {
                const long long window = (plane * down.count + oy) * across.count + ox;
                if (index[window] == here) {
                    sum += grad[window];
                }
            }
        }
        grad_x[i] = sum;
    });
}

// The divisor of a window's sum.
struct Divisor {
    long long count_include_pad; // Whether padding counts.
    long long fixed;             // A divisor for all windows; 0 if there is none.

    __device__ long long of(const Windows &down, const Windows &across, long long row, long long column) const {
        if (fixed != 0) {
            return fixed;
        }
        return count_include_pad != 0 ? down.padded_elements(row) * across.padded_elements(column)
                                 : (down.end(row) - down.first(row)) * (across.end(column) - across.first(column));
    }
};

// The sum of the elements of a window.
template <typename T, typename Along>
__device__ calculated<T> window_sum(const T *image, const Along &down, const Along &across, long long row, long long column) {
    calculated<T> sum = 0;
    for (long long y = down.first(row); y < down.end(row); y++) {
        for (long long x = across.first(column); x < across.end(column); x++) {
            sum += image[y * across.size + x];
        }
    }
    return sum;
}

template <typename T>
__device__ void avg_pool2d(const T *x, T *out, const View &out_view, Windows down, Windows across, Divisor divisor) {
    for_elements(out_view, [=](long long i, long long plane, long long row, long long column) {
        const calculated<T> sum = window_sum(x + plane * down.size * across.size, down, across, row, column);
        out[i] = sum / (calculated<T>)divisor.of(down, across, row, column);
    });
}

template <typename T>
__device__ void adaptive_avg_pool2d(const T *x, T *out, const View &out_view, Adaptive down, Adaptive across) {
    for_elements(out_view, [=](long long i, long long plane, long long row, long long column) {
        const calculated<T> sum = window_sum(x + plane * down.size * across.size, down, across, row, column);
        out[i] = sum / (calculated<T>)down.elements(row) / (calculated<T>)across.elements(column);
    });
}

// The gradient of each element: the sum of `divided(gradient, row, column)` over the windows that cover it.
template <typename T, typename Along, typename Divided>
__device__ void means_backward(const T *grad, T *grad_x, const View &grad_x_view, Along down, Along across,
                               Divided divided) {
    for_elements(grad_x_view, [=](long long i, long long plane, long long row, long long column) {
        const T *of_plane = grad + plane * down.count * across.count;
        calculated<T> sum = 0;
        for (long long oy = down.first_over(row); oy < down.end_over(row); oy++) {
            for (long long ox = across.first_over(column); ox < across.end_over(column); ox++) {
                sum += divided(of_plane[oy * across.count + ox], oy, ox);
            }
        }
        grad_x[i] = sum;
    });
}

#define MAX_POOL(name, suffix, T)                                                                           \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), OUTPUT(T, out), OUTPUT(int, index), WINDOWS) {  \
        name(x, out, out_view, index, down, across);                                                        \
    }

#define MAX_POOL_BACKWARD(name, suffix, T)                                                                  \
    extern "C" __global__ void name##_##suffix(INPUT(T, grad), INPUT(int, index), OUTPUT(T, grad_x),        \
                                               WINDOWS) {                                                   \
        name(grad, index, grad_x, grad_x_view, down, across);                                               \
    }

#define AVG_POOL(name, suffix, T)                                                                           \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), OUTPUT(T, out), WINDOWS,                        \
                                               const __grid_constant__ Divisor divisor) {                   \
        name(x, out, out_view, down, across, divisor);                                                      \
    }                                                                                                       \
    extern "C" __global__ void name##_backward_##suffix(INPUT(T, grad), OUTPUT(T, grad_x), WINDOWS,         \
                                                        const __grid_constant__ Divisor divisor) {          \
        using C = calculated<T>;                                                                            \
        means_backward(grad, grad_x, grad_x_view, down, across, [&](C g, long long row, long long column) { \
            return g / (C)divisor.of(down, across, row, column);                                            \
        });                                                                                                 \
    }

#define ADAPTIVE_AVG_POOL(name, suffix, T)                                                                  \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), OUTPUT(T, out)) {                               \
        name(x, out, out_view, Adaptive{x_view.size[1], out_view.size[1]},                                  \
             Adaptive{x_view.size[2], out_view.size[2]});                                                   \
    }                                                                                                       \
    extern "C" __global__ void name##_backward_##suffix(INPUT(T, grad), OUTPUT(T, grad_x)) {                \
        const Adaptive down{grad_x_view.size[1], grad_view.size[1]};                                        \
        const Adaptive across{grad_x_view.size[2], grad_view.size[2]};                                      \
        using C = calculated<T>;                                                                            \
        means_backward(grad, grad_x, grad_x_view, down, across, [=](C g, long long row, long long column) { \
            return g / (C)down.elements(row) / (C)across.elements(column);                                  \
        });                                                                                                 \
    }

FOR_NUMBERS(MAX_POOL, max_pool2d)
FOR_FLOATS(MAX_POOL_BACKWARD, max_pool2d_backward)
FOR_FLOATS(AVG_POOL, avg_pool2d)
FOR_FLOATS(ADAPTIVE_AVG_POOL, adaptive_avg_pool2d)
