// The negative log likelihood; and, with log_softmax in the same pass, the cross entropy.
//
// A row has one target, the number of its class. A row with the target `ignore_index` is ignored. Without class
// weights the weight is 1: a scalar instead of a vector.
#include "softmax.cuh"

enum Reduction : long long { MEAN, SUM, NONE };

// Whether a row counts. An invalid target stops the program: the memory there is unknown.
__device__ inline bool counts(long long target, long long ignore_index, long long classes) {
    assert(target == ignore_index || (target >= 0 && target < classes));
    return target != ignore_index;
}

// The weight of a class: a scalar applies to all of them.
template <typename T>
__device__ calculated<T> of_class(const Input<T> &weight, long long c) {
    return (calculated<T>)(weight.x == nullptr ? weight.value : weight.x[c * weight.view.stride[0]]);
}

// The total weight of the rows that count, for all threads of the block.
template <typename T, typename C>
__device__ C total_weight(const Block<C> &block, const long long *target, const Input<T> &weight, long long rows,
                          long long classes, long long ignore_index) {
    return block.template reduce<Sum>(rows, [&](long long row) {
        return counts(target[row], ignore_index, classes) ? of_class(weight, target[row]) : (C)0;
    });
}

// The loss of each row or, computed by one block, their sum or weighted mean.
template <typename T, typename C = calculated<T>>
__device__ void nll_loss(const T *log_probs, const View &log_probs_view, const long long *target,
                         const Input<T> &weight, T *out, long long ignore_index, long long reduction) {
    __shared__ Levels<C> levels;
    const Block<C> block{levels};
    const long long rows = log_probs_view.size[0], classes = log_probs_view.size[1];
    const auto loss = [&](long long row) {
        const long long c = target[row];
        return counts(c, ignore_index, classes) ? -of_class(weight, c) * log_probs[row * classes + c] : (C)0;
    };
    if (reduction == NONE) {
        for (long long row = first_element(); row < rows; row += all_threads()) {
            out[row] = loss(row);
        }
        return;
    }
    if (blockIdx.x > 0) {
        return;
    }
    C result = block.template reduce<Sum>(rows, loss);
    if (reduction == MEAN) {
        result = result / total_weight(block, target, weight, rows, classes, ignore_index);
    }
    if (threadIdx.x == 0) {
        *out = result;
    }
}

// Writes the nonzero gradients: one per row, at its class.
template <typename T, typename C = calculated<T>>
__device__ void nll_loss_backward(const T *grad, T grad_value, const long long *target, const Input<T> &weight, T *out,
                                  const View &out_view, long long ignore_index, long long reduction) {
    __shared__ Levels<C> levels;
    const long long rows = out_view.size[0], classes = out_view.size[1];
    if ((long long)blockIdx.x * blockDim.x >= rows) {
        return; // Nothing to write, so the total is not needed. All threads of the block agree.
    }
    const C total = reduction == MEAN
                        ? total_weight(Block<C>{levels}, target, weight, rows, classes, ignore_index)
                        : 1;
    for (long long row = first_element(); row < rows; row += all_threads()) {
        const long long c = target[row];
        if (counts(c, ignore_index, classes)) {
            const C g = (C)(grad == nullptr ? grad_value : grad[reduction == NONE ? row : 0]);
            out[row * classes + c] = -of_class(weight, c) * g / total;
        }
    }
}

// The cross entropy of each row of scores, and the log-probabilities, for the gradient. A row is read from
// memory once, and the probability of its class is then already available.
template <typename T, typename C = calculated<T>>
__device__ void cross_entropy(const T *scores, const View &view, const long long *target, const Input<T> &weight,
                              T *log_probs, T *losses, long long ignore_index) {
    __shared__ Levels<C> levels;
    const long long classes = view.size[1];
    for_rows(levels, view.size[0], classes, [&](long long row, auto threads) {
        const T *x = scores + row * classes;
        const auto [largest, total] = exponentials(x, classes, threads);
        const C log_total = math::log(total);
        for (long long i = threads.first(); i < classes; i += threads.threads()) {
            log_probs[row * classes + i] = x[i] - largest - log_total;
        }
        if (threads.first() == 0) {
            const long long c = target[row];
            losses[row] =
                counts(c, ignore_index, classes) ? -of_class(weight, c) * (x[c] - largest - log_total) : (C)0;
        }
    });
}

// The sum or weighted mean of all rows' losses, and its divisor: a double, since the weights of thousands of
// rows exceed the range of a half. One block suffices: there is one loss per row of scores.
template <typename T, typename C = calculated<T>>
__device__ void cross_entropy_mean(const T *losses, const View &losses_view, const long long *target,
                                   const Input<T> &weight, T *out, double *divisor, long long classes,
                                   long long ignore_index, long long reduction) {
    __shared__ Levels<C> levels;
    const Block<C> block{levels};
    const long long rows = losses_view.size[0];
    const C sum = block.template reduce<Sum>(rows, [&](long long row) { return losses[row]; });
    const C total = reduction == MEAN ? total_weight(block, target, weight, rows, classes, ignore_index) : (C)1;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *out = sum / total;
        *divisor = total;
    }
}

// The gradient of the scores: g · (p − 1) at the class, g · p elsewhere, where p is the probability and g the
// weight of the row times the gradient of its loss.
template <typename T, typename C = calculated<T>>
__device__ void cross_entropy_backward(const Input<T> &grad, const T *log_probs, const long long *target,
                                       const Input<T> &weight, double divisor, T *out, const View &out_view,
                                       long long ignore_index) {
    const long long classes = out_view.size[1], n = elements(out_view);
    for (long long i = first_element(); i < n; i += all_threads()) {
        const long long row = i / classes, c = target[row];
        const C g = counts(c, ignore_index, classes) ? -of_class(weight, c) * grad[row] / (C)divisor : (C)0;
        out[i] = (i - row * classes == c ? g : (C)0) - math::exp(log_probs[i]) * g;
    }
}

#define NLL_LOSS(name, suffix, T)                                                                            \
    extern "C" __global__ void name##_##suffix(INPUT(T, log_probs), INPUT(long long, target), INPUT(T, weight), \
                                               OUTPUT(T, out), long long ignore_index, long long reduction) { \
        nll_loss(log_probs, log_probs_view, target, READ(weight), out, ignore_index, reduction);             \
    }                                                                                                        \
    extern "C" __global__ void name##_backward_##suffix(INPUT(T, grad), INPUT(long long, target),            \
                                                        INPUT(T, weight), OUTPUT(T, out),                    \
                                                        long long ignore_index, long long reduction) {       \
        nll_loss_backward(grad, grad_value, target, READ(weight), out, out_view, ignore_index, reduction);   \
    }

FOR_FLOATS(NLL_LOSS, nll_loss)

#define CROSS_ENTROPY(name, suffix, T)                                                                        \
    extern "C" __global__ void name##_##suffix(INPUT(T, scores), INPUT(long long, target), INPUT(T, weight),  \
                                               OUTPUT(T, log_probs), OUTPUT(T, losses), long long ignore_index) { \
        cross_entropy(scores, scores_view, target, READ(weight), log_probs, losses, ignore_index);            \
    }                                                                                                         \
    extern "C" __global__ void name##_mean_##suffix(INPUT(T, losses), INPUT(long long, target),               \
                                                    INPUT(T, weight), OUTPUT(T, out), OUTPUT(double, divisor), \
                                                    long long classes, long long ignore_index,                \
                                                    long long reduction) {                                    \
        cross_entropy_mean(losses, losses_view, target, READ(weight), out, divisor, classes, ignore_index,    \
                           reduction);                                                                        \
    }                                                                                                         \
    extern "C" __global__ void name##_backward_##suffix(INPUT(T, grad), INPUT(T, log_probs),                  \
                                                        INPUT(long long, target), INPUT(T, weight),           \
                                                        INPUT(double, divisor), OUTPUT(T, out),               \
                                                        long long ignore_index) {                             \
        cross_entropy_backward(READ(grad), log_probs, target, READ(weight), READ(divisor)[0], out, out_view,  \
                               ignore_index);                                                                 \
    }

FOR_FLOATS(CROSS_ENTROPY, cross_entropy)
