// Activations with parameters, or that multiply by a number between 0 and 1: softplus, silu, leaky_relu, gelu.
#include "double.cuh"
#include "elementwise.cuh"
#include "math.cuh"

namespace element {

using math::exp;
using math::log;

// ln(1 + x). For small x the sum loses digits, and its logarithm is off by the ratio of the part kept to x.
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

// Computed from x itself: a zero result does not reveal the sign of x if the slope is 0.
template <typename T> __device__ T leaky_relu(T x, T slope) { return x > 0 ? x : x * slope; }
template <typename T> __device__ T leaky_relu_backward(T grad, T x, T slope) { return x > 0 ? grad : grad * slope; }

// √(2/π), and the coefficient of x³: tanh(√(2/π) · (x + 0.044715 · x³)) approximates erf(x / √2).
constexpr double SLOPE = 1.12837916709551257390 * 0.70710678118654752440;
constexpr double CUBE = 0.044715;

template <typename T> __device__ T gelu(T x) { return x * math::normal_cdf(x); }

// Φ(x) + x φ(x), with the density φ(x) = e^(−x²/2) / √(2π)
template <typename T> __device__ T gelu_backward(T grad, T x) {
    const T density = math::exp((T)-0.5 * x * x) * (T)(0.5 * SLOPE);
    return grad * (math::normal_cdf(x) + x * density);
}

template <typename T> __device__ T gelu_tanh(T x) {
    return (T)0.5 * x * (1 + math::tanh((T)SLOPE * (x + (T)CUBE * (x * x * x))));
}

template <typename T> __device__ T gelu_tanh_backward(T grad, T x) {
    const T square = x * x;
    const T tanh = math::tanh((T)SLOPE * (x + (T)CUBE * (square * x)));
    const T slope = (T)SLOPE * (1 + (T)(3.0 * CUBE) * square);
    return grad * ((T)0.5 * (1 + tanh) + (T)0.5 * x * (1 - tanh * tanh) * slope);
}

} // namespace element

// The scalar parameters have the type used for arithmetic.
#define SOFTPLUS(operation, suffix, T)                         \
    MAP(operation, suffix, T, T, calculated<T>, calculated<T>) \
    MAP(operation##_backward, suffix, T, T, T, calculated<T>, calculated<T>)

#define LEAKY_RELU(operation, suffix, T)        \
    MAP(operation, suffix, T, T, calculated<T>) \
    MAP(operation##_backward, suffix, T, T, T, calculated<T>)

FOR_FLOATS(SOFTPLUS, softplus)
FOR_FLOATS(UNARY, silu)
FOR_FLOATS(BINARY, silu_backward)
FOR_FLOATS(LEAKY_RELU, leaky_relu)
FOR_FLOATS(UNARY, gelu)
FOR_FLOATS(UNARY, gelu_tanh)
FOR_FLOATS(BINARY, gelu_backward)
FOR_FLOATS(BINARY, gelu_tanh_backward)
