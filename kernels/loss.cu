// The negative log likelihood: with log_softmax before it, the cross entropy.
//
// A row of log-probabilities has one target, the number of its class. Where that is `ignore_index` the row counts for
// nothing. The weight of a class is 1 where there are none: a number instead of a vector.
#include "tree.cuh"

enum Reduction : long long { MEAN, SUM, NONE };

// Whether a row counts. A target that is no class ends the program: there is no telling what lies there.
__device__ inline bool counts(long long target, long long ignore_index, long long classes) {
    assert(target == ignore_index || (target >= 0 && target < classes));
    return target != ignore_index;
}

// The weight of a class: a number stands for all of them.
template <typename T>
__device__ calculated<T> of_class(const Input<T> &weight, long long c) {
    return (calculated<T>)(weight.x == nullptr ? weight.value : weight.x[c * weight.view.stride[0]]);
}

// The weights of the rows that count, together, for all threads of the block.
template <typename T, typename C>
__device__ C total_weight(const Block<C> &block, const long long *target, const Input<T> &weight, long long rows,
                          long long classes, long long ignore_index) {
    return block.template reduce<Sum>(rows, [&](long long row) {
        return counts(target[row], ignore_index, classes) ? of_class(weight, target[row]) : (C)0;
    });
}

// The loss of each row, or, by one block, their sum or weighted mean.
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

// Writes the gradients that are not 0: one of each row, at its class.
template <typename T, typename C = calculated<T>>
__device__ void nll_loss_backward(const T *grad, T grad_value, const long long *target, const Input<T> &weight, T *out,
                                  const View &out_view, long long ignore_index, long long reduction) {
    __shared__ Levels<C> levels;
    const long long rows = out_view.size[0], classes = out_view.size[1];
    if ((long long)blockIdx.x * blockDim.x >= rows) {
        return; // Nothing to write, so no need of the total either. All threads of the block agree.
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
