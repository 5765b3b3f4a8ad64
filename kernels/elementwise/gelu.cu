// GELU and its gradient: x times the probability that a number drawn from the normal distribution is below x.
#include "double.cuh"
#include "elementwise.cuh"
#include "math.cuh"

namespace element {

// √(2/π), and what x³ is multiplied by: tanh(√(2/π) · (x + 0.044715 · x³)) stands for erf(x / √2).
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

FOR_FLOATS(UNARY, gelu)
FOR_FLOATS(UNARY, gelu_tanh)
FOR_FLOATS(BINARY, gelu_backward)
FOR_FLOATS(BINARY, gelu_tanh_backward)
