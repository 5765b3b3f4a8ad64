// Optimizer steps.
//
// Each is one kernel that reads and writes every number once. Composed of elementwise operations, Adam would
// need a dozen kernels, each of which would move the parameters through the GPU's memory and back.
#include "common.cuh"

__device__ inline float root(float x) { return __fsqrt_rn(x); }
__device__ inline double root(double x) { return __dsqrt_rn(x); }

// Adam (Kingma and Ba), with PyTorch's rounding:
// m ← m + (1 − β₁)(g − m), v ← β₂v + (1 − β₂)g², p ← p − step · m / (√v / √(1 − β₂ᵗ) + ε).
//
// Values that do not depend on the element are calculated in double precision and then rounded, redundantly by
// each thread: a few instructions, compared with the memory latency. Halves are rounded once, when they are
// written.
template <typename T, typename C = calculated<T>>
__device__ void adam(const Input<T> &grad, T *parameter, const View &parameter_view, T *exp_avg,
                     const View &exp_avg_view, T *exp_avg_sq, const View &exp_avg_sq_view, double beta1, double beta2,
                     double eps, double weight_decay, double shrink, double step_size,
                     double bias_correction2_sqrt) {
    const C weight = (C)(1.0 - beta1), other_weight = (C)beta1;
    const bool small_weight = 1.0 - beta1 < 0.5;
    const C rest2 = (C)(1.0 - beta2);
    const C minus_step = (C)-step_size;

    const long long n = elements(parameter_view);
    for (long long i = first_element(); i < n; i += all_threads()) {
        T &to_p = parameter[position(parameter_view, i)];
        T &to_m = exp_avg[position(exp_avg_view, i)];
        T &to_v = exp_avg_sq[position(exp_avg_sq_view, i)];
        const C p = to_p, m = to_m, v = to_v;

        const C shrunk = p * (C)shrink;
        C g = grad[i];
        if (weight_decay != 0.0) {
            g = fused(shrunk, (C)weight_decay, g);
        }
        // Like PyTorch's lerp, starts from the nearer end.
        const C new_m = small_weight ? fused(g - m, weight, m) : g - (g - m) * other_weight;
        const C new_v = fused(rest2 * g, g, v * (C)beta2);
        const C denominator = root(new_v) / (C)bias_correction2_sqrt + (C)eps;
        to_p = shrunk + minus_step * new_m / denominator;
        to_m = new_m;
        to_v = new_v;
    }
}

#define ADAM(name, suffix, T)                                                                                  \
    extern "C" __global__ void name##_##suffix(                                                                \
        INPUT(T, grad), OUTPUT(T, parameter), OUTPUT(T, exp_avg), OUTPUT(T, exp_avg_sq), double beta1,         \
        double beta2, double eps, double weight_decay, double shrink, double step_size,                        \
        double bias_correction2_sqrt) {                                                                        \
        adam(READ(grad), parameter, parameter_view, exp_avg, exp_avg_view, exp_avg_sq, exp_avg_sq_view, beta1, \
             beta2, eps, weight_decay, shrink, step_size, bias_correction2_sqrt);                              \
    }

FOR_FLOATS(ADAM, adam)

// The gradient with its sign (for maximize) and weight decay.
template <typename T>
__device__ T decayed(T grad, T parameter, bool maximize, double weight_decay) {
    grad = maximize ? -grad : grad;
    return weight_decay != 0.0 ? fused(parameter, (T)weight_decay, grad) : grad;
}

// p ← p − lr · g
template <typename T, typename C = calculated<T>>
__device__ void sgd(const Input<T> &grad, T *parameter, const View &parameter_view, bool maximize, double lr,
                    double weight_decay) {
    const C minus_lr = (C)-lr;
    const long long n = elements(parameter_view);
    for (long long i = first_element(); i < n; i += all_threads()) {
        T &to_p = parameter[position(parameter_view, i)];
        const C p = to_p;
        to_p = fused(decayed<C>(grad[i], p, maximize, weight_decay), minus_lr, p);
    }
}

// With momentum: b ← μb + (1 − dampening)g, p ← p − lr · b; in the first step b becomes g itself. Nesterov's form takes
// g + μb for the direction.
template <bool FIRST, typename T, typename C = calculated<T>>
__device__ void sgd_momentum(const Input<T> &grad, T *parameter, const View &parameter_view, T *buffer,
                             const View &buffer_view, bool nesterov, bool maximize, double lr, double momentum,
                             double dampening, double weight_decay) {
    const C minus_lr = (C)-lr, mu = (C)momentum, undamped = (C)(1.0 - dampening);
    const long long n = elements(parameter_view);
    for (long long i = first_element(); i < n; i += all_threads()) {
        T &to_p = parameter[position(parameter_view, i)];
        T &to_b = buffer[position(buffer_view, i)];
        const C p = to_p, b = to_b;
        const C g = decayed<C>(grad[i], p, maximize, weight_decay);
        const C new_b = FIRST ? g : fused(g, undamped, b * mu);
        const C direction = nesterov ? fused(new_b, mu, g) : new_b;
        to_p = fused(direction, minus_lr, p);
        to_b = new_b;
    }
}

// Every step takes all options, whether it needs them or not.
#define SGD(name, suffix, T)                                                                                    \
    extern "C" __global__ void name##_##suffix(INPUT(T, grad), OUTPUT(T, parameter), long long, long long maximize, \
                                               double lr, double, double, double weight_decay) {                \
        sgd(READ(grad), parameter, parameter_view, maximize != 0, lr, weight_decay);                            \
    }

#define SGD_MOMENTUM(name, FIRST, suffix, T)                                                                    \
    extern "C" __global__ void name##_##suffix(INPUT(T, grad), OUTPUT(T, parameter), OUTPUT(T, buffer),         \
                                               long long nesterov, long long maximize, double lr, double momentum, \
                                               double dampening, double weight_decay) {                         \
        sgd_momentum<FIRST>(READ(grad), parameter, parameter_view, buffer, buffer_view, nesterov != 0,          \
                            maximize != 0, lr, momentum, dampening, weight_decay);                              \
    }

FOR_FLOATS(SGD, sgd)
FOR_FLOATS(SGD_MOMENTUM, sgd_momentum_first, true)
FOR_FLOATS(SGD_MOMENTUM, sgd_momentum, false)
