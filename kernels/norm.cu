// Normalisation: values shifted and scaled to mean 0 and variance 1, over a batch or over a layer; and the gradients.
//
// All tensors lie in order. A mean is needed before a variance, and both before the first result, so the threads that
// share a row read it three times; the second and third time it comes from the cache, if it fits.
#include "tree.cuh"

__device__ inline float root(float x) { return __fsqrt_rn(x); }
__device__ inline double root(double x) { return __dsqrt_rn(x); }

// Mean and 1 / √(variance + eps) of a row.
template <typename T> struct Moments {
    T mean, var;

    __device__ T invstd(double eps) const { return 1 / root(var + (T)eps); }
};
template <typename T, typename Threads, typename Element>
__device__ Moments<T> moments(const Threads &threads, long long length, Element element) {
    const T mean = threads.template reduce<Sum>(length, element) / (T)length;
    const T squares = threads.template reduce<Sum>(length, [&](long long i) {
        const T deviation = element(i) - mean;
        return deviation * deviation;
    });
    return {mean, squares / (T)length};
}

// Where the elements of a channel are in (batch, channels, positions).
struct Channel {
    long long channels, positions, channel;

    __device__ long long operator[](long long i) const {
        const long long sample = i / positions;
        return (sample * channels + channel) * positions + (i - sample * positions);
    }
};

// Calls `work(channel, elements of a channel, threads)`; a channel is a row of all samples.
template <typename T, typename Work>
__device__ void for_channels(const View &view, Work work) {
    __shared__ Levels<T> levels;
    const long long channels = view.size[1], positions = view.size[2], length = view.size[0] * positions;
    for_rows(levels, channels, length, [&](long long channel, auto threads) {
        work(Channel{channels, positions, channel}, length, threads);
    });
}

// Mean and variance of each channel, 1 / √(variance + eps), and the channels normalised with them. When not training,
// mean and variance are those given.
template <typename T>
__device__ void batch_norm(const T *x, const View &view, const Input<T> &weight, const Input<T> &bias,
                           const Input<T> &running_mean, const Input<T> &running_var, T *mean, T *var, T *invstd,
                           T *out, bool training, double eps) {
    for_channels<T>(view, [&](Channel at, long long length, auto threads) {
        const long long c = at.channel;
        const Moments<T> of = training ? moments<T>(threads, length, [&](long long i) { return x[at[i]]; })
                                       : Moments<T>{running_mean[c], running_var[c]};
        const T deviation = of.invstd(eps), scale = deviation * weight[c], shift = bias[c];
        if (threads.first() == 0) {
            mean[c] = of.mean;
            var[c] = of.var;
            invstd[c] = deviation;
        }
        for (long long i = threads.first(); i < length; i += threads.threads()) {
            out[at[i]] = (x[at[i]] - of.mean) * scale + shift;
        }
    });
}

// The gradients of weight and bias, and of the input: (g − mean of g − (x − mean) · slope) · scale.
template <typename T>
__device__ void batch_norm_backward(const T *grad, const T *x, const View &view, const Input<T> &weight, const T *mean,
                                    const T *invstd, T *grad_weight, T *grad_bias, T *grad_x, bool training) {
    for_channels<T>(view, [&](Channel at, long long length, auto threads) {
        const long long c = at.channel;
        const T middle = mean[c], deviation = invstd[c], scale = deviation * weight[c];
        const T sum = threads.template reduce<Sum>(length, [&](long long i) { return grad[at[i]]; });
        const T product = threads.template reduce<Sum>(
            length, [&](long long i) { return grad[at[i]] * (x[at[i]] - middle); });
        // Of given mean and variance x is no part.
        const T mean_grad = training ? sum / (T)length : 0;
        const T slope = training ? product * deviation * deviation / (T)length : 0;
        if (threads.first() == 0) {
            grad_weight[c] = product * deviation;
            grad_bias[c] = sum;
        }
        for (long long i = threads.first(); i < length; i += threads.threads()) {
            grad_x[at[i]] = (grad[at[i]] - mean_grad - (x[at[i]] - middle) * slope) * scale;
        }
    });
}

// Moves the running mean and variance towards those of a batch.
template <typename T>
__device__ void running_stats(const T *mean, const T *var, T *running_mean, const View &view, T *running_var,
                              double momentum, double correction) {
    const T take = (T)momentum, keep = (T)(1.0 - momentum);
    const long long n = elements(view);
    for (long long i = first_element(); i < n; i += all_threads()) {
        running_mean[i] = take * mean[i] + keep * running_mean[i];
        running_var[i] = take * (var[i] * (T)correction) + keep * running_var[i];
    }
}

// Calls `work(first element of the row, row, length, threads)` for the rows of a matrix.
template <typename T, typename Work>
__device__ void for_matrix_rows(const View &view, Work work) {
    __shared__ Levels<T> levels;
    const long long length = view.size[1];
    for_rows(levels, view.size[0], length,
             [&](long long row, auto threads) { work(row * length, row, length, threads); });
}

// Each row normalised. `stats` gets its mean and 1 / √(variance + eps).
template <typename T>
__device__ void layer_norm(const T *x, const Input<T> &weight, const Input<T> &bias, T *out, const View &view, T *stats,
                           double eps) {
    for_matrix_rows<T>(view, [&](long long start, long long row, long long length, auto threads) {
        const T *of_row = x + start;
        const Moments<T> of = moments<T>(threads, length, [&](long long i) { return of_row[i]; });
        const T deviation = of.invstd(eps);
        if (threads.first() == 0) {
            stats[2 * row] = of.mean;
            stats[2 * row + 1] = deviation;
        }
        for (long long i = threads.first(); i < length; i += threads.threads()) {
            out[start + i] = (of_row[i] - of.mean) * deviation * weight[i] + bias[i];
        }
    });
}

// With g the gradient times the weight and n = (x − mean) · invstd: (g − mean of g − n · mean of g n) · invstd. And the
// products whose sums over the rows are the gradient of the weight.
template <typename T>
__device__ void layer_norm_backward(const T *grad, const T *x, const Input<T> &weight, const T *stats, T *grad_x,
                                    const View &view, T *products) {
    for_matrix_rows<T>(view, [&](long long start, long long row, long long length, auto threads) {
        const T mean = stats[2 * row], invstd = stats[2 * row + 1];
        const auto weighted = [&](long long i) { return grad[start + i] * weight[i]; };
        const auto normal = [&](long long i) { return (x[start + i] - mean) * invstd; };
        const T mean_product =
            threads.template reduce<Sum>(length, [&](long long i) { return weighted(i) * normal(i); }) / (T)length;
        const T mean_grad = threads.template reduce<Sum>(length, weighted) / (T)length;
        for (long long i = threads.first(); i < length; i += threads.threads()) {
            grad_x[start + i] = (weighted(i) - mean_grad - normal(i) * mean_product) * invstd;
            products[start + i] = grad[start + i] * normal(i);
        }
    });
}

#define BATCH_NORM(name, suffix, T)                                                                          \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), INPUT(T, weight), INPUT(T, bias),                \
                                               INPUT(T, running_mean), INPUT(T, running_var), OUTPUT(T, mean), \
                                               OUTPUT(T, var), OUTPUT(T, invstd), OUTPUT(T, out),             \
                                               long long training, double eps) {                             \
        name(x, x_view, READ(weight), READ(bias), READ(running_mean), READ(running_var), mean, var, invstd,  \
             out, training != 0, eps);                                                                       \
    }                                                                                                        \
    extern "C" __global__ void name##_backward_##suffix(                                                     \
        INPUT(T, grad), INPUT(T, x), INPUT(T, weight), INPUT(T, mean), INPUT(T, invstd),                     \
        OUTPUT(T, grad_weight), OUTPUT(T, grad_bias), OUTPUT(T, grad_x), long long training) {               \
        name##_backward(grad, x, x_view, READ(weight), mean, invstd, grad_weight, grad_bias, grad_x,         \
                        training != 0);                                                                      \
    }

#define RUNNING_STATS(name, suffix, T)                                                                       \
    extern "C" __global__ void name##_##suffix(INPUT(T, mean), INPUT(T, var), OUTPUT(T, running_mean),       \
                                               OUTPUT(T, running_var), double momentum, double correction) {  \
        name(mean, var, running_mean, running_mean_view, running_var, momentum, correction);                 \
    }

#define LAYER_NORM(name, suffix, T)                                                                          \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), INPUT(T, weight), INPUT(T, bias),                \
                                               OUTPUT(T, out), OUTPUT(T, stats), double eps) {               \
        name(x, READ(weight), READ(bias), out, out_view, stats, eps);                                        \
    }                                                                                                        \
    extern "C" __global__ void name##_backward_##suffix(INPUT(T, grad), INPUT(T, x), INPUT(T, weight),       \
                                                        INPUT(T, stats), OUTPUT(T, grad_x),                  \
                                                        OUTPUT(T, products)) {                               \
        name##_backward(grad, x, READ(weight), stats, grad_x, grad_x_view, products);                        \
    }

// Halves have no kernels of their own: what is calculated once and kept for the gradients is not rounded to them, and
// weights may be floats. They are converted before and after.
#define FOR_FLOAT_AND_DOUBLE(KERNEL, name) \
    KERNEL(name, f32, float)               \
    KERNEL(name, f64, double)

FOR_FLOAT_AND_DOUBLE(BATCH_NORM, batch_norm)
FOR_FLOAT_AND_DOUBLE(RUNNING_STATS, running_stats)
FOR_FLOAT_AND_DOUBLE(LAYER_NORM, layer_norm)
