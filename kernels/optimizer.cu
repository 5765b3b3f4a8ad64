// Optimizer steps.
//
// Each is one kernel that reads and writes every number once. Made of elementwise operations, Adam would take a
// dozen kernels, and each of them would carry the parameters through the memory of the GPU and back.
#include "common.cuh"

// a · b + c, rounded once. The compiler is told to fuse nothing by itself (`--fmad=false`), so a fused
// multiply-add is where PyTorch has one, and nowhere else.
__device__ inline float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return __fma_rn(a, b, c); }

__device__ inline float root(float x) { return __fsqrt_rn(x); }
__device__ inline double root(double x) { return __dsqrt_rn(x); }

// Kingma and Ba, with PyTorch's rounding:
// m ← m + (1 − β₁)(g − m), v ← β₂v + (1 − β₂)g², p ← p − step · m / (√v / √(1 − β₂ᵗ) + ε).
//
// What does not depend on the element is calculated in double precision and then rounded to T, by each thread
// for itself: a few instructions against the waiting for memory.
template <typename T>
__device__ void adam(const T *grad, T grad_value, const View &grad_view, T *parameter,
                     const View &parameter_view, T *exp_avg, const View &exp_avg_view, T *exp_avg_sq,
                     const View &exp_avg_sq_view, double beta1, double beta2, double eps,
                     double weight_decay, double shrink, double step_size,
                     double bias_correction2_sqrt) {
    const T weight = (T)(1.0 - beta1), other_weight = (T)beta1;
    const bool small_weight = 1.0 - beta1 < 0.5;
    const T rest2 = (T)(1.0 - beta2);
    const T minus_step = (T)-step_size;

    const long long n = elements(parameter_view);
    for (long long i = first_element(); i < n; i += all_threads()) {
        T &p = parameter[position(parameter_view, i)];
        T &m = exp_avg[position(exp_avg_view, i)];
        T &v = exp_avg_sq[position(exp_avg_sq_view, i)];

        const T shrunk = p * (T)shrink;
        T g = load(grad, grad_value, grad_view, i);
        if (weight_decay != 0.0) {
            g = fused(shrunk, (T)weight_decay, g);
        }
        // PyTorch's lerp starts from the nearer end.
        const T new_m = small_weight ? fused(g - m, weight, m) : g - (g - m) * other_weight;
        const T new_v = fused(rest2 * g, g, v * (T)beta2);
        const T denominator = root(new_v) / (T)bias_correction2_sqrt + (T)eps;
        p = shrunk + minus_step * new_m / denominator;
        m = new_m;
        v = new_v;
    }
}

#define ADAM(suffix, T)                                                                                \
    extern "C" __global__ void adam_##suffix(                                                          \
        INPUT(T, grad), OUTPUT(T, parameter), OUTPUT(T, exp_avg), OUTPUT(T, exp_avg_sq), double beta1, \
        double beta2, double eps, double weight_decay, double shrink, double step_size,                \
        double bias_correction2_sqrt) {                                                                \
        adam(grad, grad_value, grad_view, parameter, parameter_view, exp_avg, exp_avg_view,            \
             exp_avg_sq, exp_avg_sq_view, beta1, beta2, eps, weight_decay, shrink, step_size,          \
             bias_correction2_sqrt);                                                                   \
    }

ADAM(f32, float)
ADAM(f64, double)
