// exp, log, sin, cos, tanh, sigmoid, pow, softplus and silu of each element.
#include "angle.cuh"
#include "double.cuh"
#include "elementwise.cuh"
#include "math.cuh"
#include "pow.cuh"

namespace math {

// ln(1 + x). Of a small x the sum keeps but a part, and its logarithm is off by the ratio of the two.
template <typename T> __device__ T log_of_one_and(T x) {
    const T sum = 1 + x;
    const T kept = sum - 1;
    const T result = log(sum);
    return sum == 1 ? x : kept == x ? result : result * (x / kept);
}

template <typename T> __device__ T softplus(T x, T beta, T threshold) {
    const T scaled = x * beta;
    return scaled > threshold ? x : log_of_one_and(exp(scaled)) / beta;
}

template <typename T> __device__ T softplus_backward(T grad, T x, T beta, T threshold) {
    const T scaled = x * beta;
    const T power = exp(scaled);
    return scaled > threshold ? grad : grad * power / (power + 1);
}

template <typename T> __device__ T silu(T x) { return x / (1 + exp(-x)); }

template <typename T> __device__ T silu_backward(T grad, T x) {
    const T sigmoid = 1 / (1 + exp(-x));
    return grad * sigmoid * (1 + x * (1 - sigmoid));
}

} // namespace math

namespace element = math;

FOR_FLOATS(UNARY, exp)
FOR_FLOATS(UNARY, log)
FOR_FLOATS(UNARY, sin)
FOR_FLOATS(UNARY, cos)
FOR_FLOATS(UNARY, tanh)
FOR_FLOATS(UNARY, sigmoid)
FOR_FLOATS(UNARY, silu)
FOR_FLOATS(BINARY, silu_backward)
FOR_FLOATS(BINARY, pow)

// The numbers are of the type that elements are calculated with.
#define SOFTPLUS(operation, suffix, T)                                                                          \
    extern "C" __global__ void operation##_##suffix(INPUT(T, x), INPUT(calculated<T>, beta),                    \
                                                    INPUT(calculated<T>, threshold), OUTPUT(T, out)) {          \
        using C = calculated<T>;                                                                                \
        elementwise([](C x, C beta, C threshold) { return element::operation(x, beta, threshold); }, out, out_view, \
                    READ(x), READ(beta), READ(threshold));                                                      \
    }                                                                                                           \
    extern "C" __global__ void operation##_backward_##suffix(INPUT(T, grad), INPUT(T, x),                       \
                                                             INPUT(calculated<T>, beta),                        \
                                                             INPUT(calculated<T>, threshold), OUTPUT(T, out)) { \
        using C = calculated<T>;                                                                                \
        elementwise([](C grad, C x, C beta, C threshold) {                                                      \
            return element::operation##_backward(grad, x, beta, threshold);                                     \
        }, out, out_view, READ(grad), READ(x), READ(beta), READ(threshold));                                    \
    }

FOR_FLOATS(SOFTPLUS, softplus)
