// Normalisation: values shifted and scaled to mean 0 and variance 1, over a batch or over a layer; and the
// gradients.
//
// All tensors are contiguous. A mean is needed before a variance, and both before the first result, so the
// threads that share a row read it three times; the second and third time from the cache, if it fits.
//
// T is the type of the input, W that of weight, bias and running statistics: the same, or float for
// half-precision inputs. Arithmetic uses C, which is float for halves, and so do the values saved for the
// gradients.
#include "tree.cuh"

__device__ inline float root(float x) { return __fsqrt_rn(x); }
__device__ inline double root(double x) { return __dsqrt_rn(x); }

// The mean of a row, the sum of squared deviations from it, and 1 / √(variance + eps).
template <typename T> struct Moments {
    T mean, squares;

    __device__ T invstd(long long count, double eps) const { return 1 / root(squares / (T)count + (T)eps); }
};
template <typename T, typename Threads, typename Element>
__device__ Moments<T> moments(const Threads &threads, long long length, Element element) {
    const T mean = threads.template reduce<Sum>(length, element) / (T)length;
    const T squares = threads.template reduce<Sum>(length, [&](long long i) {
        const T deviation = element(i) - mean;
        return deviation * deviation;
    });
    return {mean, squares};
}

// The positions of a channel's elements in (batch, channels, positions).
struct Channel {
    long long channels, positions, channel;

    __device__ long long operator[](long long i) const {
        const long long sample = i / positions;
        return (sample * channels + channel) * positions + (i - sample * positions);
    }
};

// Calls `work(channel, elements of a channel, threads)`; a channel is a row across all samples.
template <typename C, typename Work>
__device__ void for_channels(const View &view, Work work) {
    __shared__ Levels<C> levels;
    const long long channels = view.size[1], positions = view.size[2], length = view.size[0] * positions;
    for_rows(levels, channels, length, [&](long long channel, auto threads) {
        work(Channel{channels, positions, channel}, length, threads);
    });
}

// The mean and variance of each channel, 1 / √(variance + eps), and the normalised channels. In evaluation,
// mean and variance are the given ones.
template <typename T, typename W, typename C = calculated<T>>
__device__ void batch_norm(const T *x, const View &view, const Input<W> &weight, const Input<W> &bias,
                           const Input<W> &running_mean, const Input<W> &running_var, C *mean, C *squares, C *invstd,
                           T *out, bool training, double eps) {
    for_channels<C>(view, [&](Channel at, long long length, auto threads) {
        const long long c = at.channel;
        const Moments<C> of = training ? moments<C>(threads, length, [&](long long i) { return (C)x[at[i]]; })
                                       : Moments<C>{running_mean[c], running_var[c]};
        const C deviation = of.invstd(training ? length : 1, eps), scale = deviation * (C)weight[c];
        // As PyTorch calculates it on the CPU, an infinite weight gives NaNs:
        // x · scale + (bias − mean · scale).
        const bool is_finite = scale - scale == 0;
        const C middle = is_finite ? of.mean : (C)0;
        const C shift = is_finite ? (C)bias[c] : (C)bias[c] - of.mean * scale;
        if (threads.first() == 0) {
            mean[c] = of.mean;
            squares[c] = of.squares;
            invstd[c] = deviation;
        }
        for (long long i = threads.first(); i < length; i += threads.threads()) {
            out[at[i]] = ((C)x[at[i]] - middle) * scale + shift;
        }
    });
}

// The gradients of weight and bias, and of the input: (g − mean of g − (x − mean) · slope) · scale. With
// given mean and variance the gradient does not depend on x, which may be infinite: g · scale.
template <typename T, typename W, typename C = calculated<T>>
__device__ void batch_norm_backward(const T *grad, const T *x, const View &view, const Input<W> &weight, const C *mean,
                                    const C *invstd, W *grad_weight, W *grad_bias, T *grad_x, bool training) {
    for_channels<C>(view, [&](Channel at, long long length, auto threads) {
        const long long c = at.channel;
        const C middle = mean[c], deviation = invstd[c], scale = deviation * (C)weight[c];
        const C sum = threads.template reduce<Sum>(length, [&](long long i) { return (C)grad[at[i]]; });
        const C product = threads.template reduce<Sum>(
            length, [&](long long i) { return (C)grad[at[i]] * ((C)x[at[i]] - middle); });
        const C mean_grad = sum / (C)length, slope = product * deviation * deviation / (C)length;
        if (threads.first() == 0) {
            grad_weight[c] = product * deviation;
            grad_bias[c] = sum;
        }
        for (long long i = threads.first(); i < length; i += threads.threads()) {
            const C g = grad[at[i]];
            grad_x[at[i]] = training ? (g - mean_grad - ((C)x[at[i]] - middle) * slope) * scale : g * scale;
        }
    });
}

// The rounding after each step of a calculation with running statistics: bfloat16 is rounded as PyTorch does on
// the CPU.
template <typename W> __device__ calculated<W> stepwise(calculated<W> x) { return x; }
template <> __device__ inline float stepwise<bf16>(float x) { return (float)(bf16)x; }

// Moves the running mean and variance towards those of a batch.
template <typename W, typename C = calculated<W>>
__device__ void running_stats(const C *mean, const C *squares, W *running_mean, const View &view, W *running_var,
                              double momentum, double count) {
    const C take = stepwise<W>((C)momentum), keep = stepwise<W>(1 - take);
    const long long n = elements(view);
    for (long long i = first_element(); i < n; i += all_threads()) {
        running_mean[i] = stepwise<W>(take * stepwise<W>(mean[i])) + stepwise<W>(keep * (C)running_mean[i]);
        const C var = stepwise<W>(stepwise<W>(squares[i]) / (C)count), kept = stepwise<W>(keep * (C)running_var[i]);
        running_var[i] = (C)((double)take * (double)var + (double)kept);
    }
}

// Calls `work(first element of the row, row, length, threads)` for the rows of a matrix.
template <typename C, typename Work>
__device__ void for_matrix_rows(const View &view, Work work) {
    __shared__ Levels<C> levels;
    const long long length = view.size[1];
    for_rows(levels, view.size[0], length,
             [&](long long row, auto threads) { work(row * length, row, length, threads); });
}

// Normalises each row. `stats` gets its mean and 1 / √(variance + eps).
template <typename T, typename W, typename C = calculated<T>>
__device__ void layer_norm(const T *x, const Input<W> &weight, const Input<W> &bias, T *out, const View &view, C *stats,
                           double eps) {
    for_matrix_rows<C>(view, [&](long long start, long long row, long long length, auto threads) {
        const T *of_row = x + start;
        const Moments<C> of = moments<C>(threads, length, [&](long long i) { return (C)of_row[i]; });
        const C deviation = of.invstd(length, eps);
        if (threads.first() == 0) {
            stats[2 * row] = of.mean;
            stats[2 * row + 1] = deviation;
        }
        for (long long i = threads.first(); i < length; i += threads.threads()) {
            out[start + i] = ((C)of_row[i] - of.mean) * deviation * (C)weight[i] + (C)bias[i];
        }
    });
}

// With g the gradient times the weight and n = (x − mean) · invstd: (g − mean of g − n · mean of g n) · invstd.
template <typename T, typename W, typename C = calculated<T>>
__device__ void layer_norm_backward(const T *grad, const T *x, const Input<W> &weight, const C *stats, T *grad_x,
                                    const View &view) {
    for_matrix_rows<C>(view, [&](long long start, long long row, long long length, auto threads) {
        const C mean = stats[2 * row], invstd = stats[2 * row + 1];
        const auto weighted = [&](long long i) { return (C)grad[start + i] * (C)weight[i]; };
        const auto normal = [&](long long i) { return ((C)x[start + i] - mean) * invstd; };
        const C mean_product =
            threads.template reduce<Sum>(length, [&](long long i) { return weighted(i) * normal(i); }) / (C)length;
        const C mean_grad = threads.template reduce<Sum>(length, weighted) / (C)length;
        for (long long i = threads.first(); i < length; i += threads.threads()) {
            grad_x[start + i] = (weighted(i) - mean_grad - normal(i) * mean_product) * invstd;
        }
    });
}

// The partial sums for the gradients of weight and bias, for each column and each chunk of rows: n · g, and g.
// A block takes a chunk of up to 32 columns.
template <typename T, typename C = calculated<T>>
__device__ void layer_norm_sums(const T *grad, const T *x, const View &view, const C *stats, C *of_weight, C *of_bias) {
    __shared__ C lanes[CHUNK];
    const long long rows = view.size[0], length = view.size[1];
    const long long chunks = divide_up(rows, CHUNK), blocks = divide_up(length, LANES); // per chunk of all columns
    for (long long block = blockIdx.x; block < blocks * chunks; block += gridDim.x) {
        const long long c = block / blocks, start = c * CHUNK, first = block % blocks * LANES;
        const int columns = in_block(length, first), count = in_chunk(rows - start);
        const T *g = grad + start * length + first, *of_x = x + start * length + first;
        const C *of_row = stats + start * 2;
        const C bias =
            chunk_of_columns<Sum>(lanes, columns, count, [=](int row, int i) { return (C)g[row * length + i]; });
        const C weight = chunk_of_columns<Sum>(lanes, columns, count, [=](int row, int i) {
            return (C)g[row * length + i] * (((C)of_x[row * length + i] - of_row[2 * row]) * of_row[2 * row + 1]);
        });
        if (threadIdx.x < columns) {
            of_weight[(first + threadIdx.x) * chunks + c] = weight;
            of_bias[(first + threadIdx.x) * chunks + c] = bias;
        }
    }
}

#define BATCH_NORM(name, suffix, T, W)                                                                       \
    extern "C" __global__ void name##_##suffix(                                                              \
        INPUT(T, x), INPUT(W, weight), INPUT(W, bias), INPUT(W, running_mean), INPUT(W, running_var),        \
        OUTPUT(calculated<T>, mean), OUTPUT(calculated<T>, var), OUTPUT(calculated<T>, invstd),              \
        OUTPUT(T, out), long long training, double eps) {                                                    \
        name(x, x_view, READ(weight), READ(bias), READ(running_mean), READ(running_var), mean, var, invstd,  \
             out, training != 0, eps);                                                                       \
    }                                                                                                        \
    extern "C" __global__ void name##_backward_##suffix(                                                     \
        INPUT(T, grad), INPUT(T, x), INPUT(W, weight), INPUT(calculated<T>, mean),                           \
        INPUT(calculated<T>, invstd), OUTPUT(W, grad_weight), OUTPUT(W, grad_bias), OUTPUT(T, grad_x),       \
        long long training) {                                                                                \
        name##_backward(grad, x, x_view, READ(weight), mean, invstd, grad_weight, grad_bias, grad_x,         \
                        training != 0);                                                                      \
    }

#define RUNNING_STATS(name, suffix, W)                                                                       \
    extern "C" __global__ void name##_##suffix(INPUT(calculated<W>, mean), INPUT(calculated<W>, squares),    \
                                               OUTPUT(W, running_mean), OUTPUT(W, running_var),              \
                                               double momentum, double count) {                              \
        name(mean, squares, running_mean, running_mean_view, running_var, momentum, count);                  \
    }

#define LAYER_NORM(name, suffix, T, W)                                                                       \
    extern "C" __global__ void name##_##suffix(INPUT(T, x), INPUT(W, weight), INPUT(W, bias),                \
                                               OUTPUT(T, out), OUTPUT(calculated<T>, stats), double eps) {   \
        name(x, READ(weight), READ(bias), out, out_view, stats, eps);                                        \
    }                                                                                                        \
    extern "C" __global__ void name##_backward_##suffix(INPUT(T, grad), INPUT(T, x), INPUT(W, weight),       \
                                                        INPUT(calculated<T>, stats), OUTPUT(T, grad_x)) {    \
        name##_backward(grad, x, READ(weight), stats, grad_x, grad_x_view);                                  \
    }

#define LAYER_NORM_SUMS(name, suffix, T)                                                                     \
    extern "C" __global__ void name##_##suffix(INPUT(T, grad), INPUT(T, x), INPUT(calculated<T>, stats),     \
                                               OUTPUT(calculated<T>, of_weight),                             \
                                               OUTPUT(calculated<T>, of_bias)) {                             \
        name(grad, x, x_view, stats, of_weight, of_bias);                                                    \
    }

#define FOR_PAIRS(KERNEL, name)      \
    KERNEL(name, f32, float, float)  \
    KERNEL(name, f64, double, double) \
    KERNEL(name, f16, f16, f16)      \
    KERNEL(name, bf16, bf16, bf16)   \
    KERNEL(name, f16_f32, f16, float) \
    KERNEL(name, bf16_f32, bf16, float)

FOR_PAIRS(BATCH_NORM, batch_norm)
FOR_FLOATS(RUNNING_STATS, running_stats)
FOR_PAIRS(LAYER_NORM, layer_norm)
FOR_FLOATS(LAYER_NORM_SUMS, layer_norm_sums)
