// Softmax and its logarithm along the last dimension, and their gradients.
//
// A row is read from memory once and written once. The second read comes from the cache, and exponentials are
// recalculated rather than stored, which is cheaper than any memory access.
#include "softmax.cuh"

// Calls `work(x of the row, out of the row, threads)`; all tensors are contiguous.
template <typename C, typename Work>
__device__ void for_rows_of(const View &view, Work work) {
    __shared__ Levels<C> levels;
    const long long length = view.ndim == 0 ? 1 : view.size[view.ndim - 1];
    for_rows(levels, elements(view) / length, length,
             [&](long long row, auto threads) { work(row * length, length, threads); });
}

// eˣ / Σ eˣ, or its logarithm x − log Σ eˣ.
template <bool LOG, typename T, typename C = calculated<T>>
__device__ void softmax(const T *x, T *out, const View &view) {
    for_rows_of<C>(view, [&](long long start, long long length, auto threads) {
        const T *row = x + start;
        const auto [largest, total] = exponentials(row, length, threads);
        if (LOG) {
            const C log_total = math::log(total);
            for (long long i = threads.first(); i < length; i += threads.threads()) {
                out[start + i] = row[i] - largest - log_total;
            }
        } else {
            for (long long i = threads.first(); i < length; i += threads.threads()) {
                out[start + i] = math::exp(row[i] - largest) / total;
            }
        }
    });
}

// For softmax: y · (g − Σ g·y). For its logarithm: g − eʸ · Σ g.
template <bool LOG, typename T, typename C = calculated<T>>
__device__ void softmax_backward(const T *grad, const T *y, T *out, const View &view) {
    for_rows_of<C>(view, [&](long long start, long long length, auto threads) {
        const T *g = grad + start, *result = y + start;
        const C total = threads.template reduce<Sum>(
            length, [&](long long i) { return LOG ? (C)g[i] : g[i] * result[i]; });
        for (long long i = threads.first(); i < length; i += threads.threads()) {
            out[start + i] = LOG ? g[i] - math::exp(result[i]) * total : (g[i] - total) * result[i];
        }
    });
}

#define SOFTMAX(name, LOG, suffix, T)                                                                          \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), OUTPUT(T, out)) {                                  \
        softmax<LOG>(x, out, out_view);                                                                        \
    }                                                                                                          \
    extern "C" __global__ void name##_backward_##suffix(INPUT(T, grad), INPUT(T, y), OUTPUT(T, out)) {         \
        softmax_backward<LOG>(grad, y, out, out_view);                                                         \
    }

FOR_FLOATS(SOFTMAX, softmax, false)
FOR_FLOATS(SOFTMAX, log_softmax, true)
