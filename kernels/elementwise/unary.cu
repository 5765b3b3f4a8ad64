// Unary elementwise operations: neg, abs, …; exp, log, …; and the gradients of relu, tanh and sigmoid.
//
// They are bit-identical to the CPU, which requires that integers wrap around, floats follow IEEE 754, and
// nothing is fused unless written so.
#include "angle.cuh"
#include "double.cuh"
#include "elementwise.cuh"
#include "math.cuh"

// The operations on one element, in a namespace because CUDA also has functions called `abs` and `sqrt`.
namespace element {

template <typename T> __device__ T neg(T x) { return (T)(-(wrapping<T>)x); }

// The absolute value of the smallest integer is itself: the positive value does not fit.
template <typename T> __device__ T abs(T x) { return x < 0 ? neg(x) : x; }
// −0.0 is not less than 0, but must lose its sign.
template <> __device__ float abs(float x) { return fabsf(x); }
template <> __device__ double abs(double x) { return fabs(x); }
// Unsigned numbers need no test.
template <> __device__ unsigned char abs(unsigned char x) { return x; }

// 1, 0 or −1; 0 for NaN.
template <typename T> __device__ T sign(T x) { return (T)((x > 0) - (x < 0)); }
template <> __device__ unsigned char sign(unsigned char x) { return x > 0; }

template <typename T> __device__ T square(T x) { return (T)((wrapping<T>)x * (wrapping<T>)x); }

// With this comparison, NaN stays NaN.
template <typename T> __device__ T relu(T x) { return x < 0 ? 0 : x; }
template <> __device__ unsigned char relu(unsigned char x) { return x; }

// Ties round to even.
__device__ inline float round(float x) { return rintf(x); }
__device__ inline double round(double x) { return rint(x); }
__device__ inline float floor(float x) { return floorf(x); }
__device__ inline double floor(double x) { return ::floor(x); }
__device__ inline float ceil(float x) { return ceilf(x); }
__device__ inline double ceil(double x) { return ::ceil(x); }

// `_rn`: rounds to the nearest float, as IEEE 754 requires; it is the compiler's default, but a flag could
// select a faster approximation.
__device__ inline float sqrt(float x) { return __fsqrt_rn(x); }
__device__ inline double sqrt(double x) { return __dsqrt_rn(x); }
__device__ inline float reciprocal(float x) { return __frcp_rn(x); }
__device__ inline double reciprocal(double x) { return __drcp_rn(x); }
// Rounds twice, as on the CPU. CUDA's `rsqrt` rounds once, but not to nearest.
template <typename T> __device__ T rsqrt(T x) { return reciprocal(sqrt(x)); }

// CUDA's own differ from the CPU's in the last digit.
using math::cos;
using math::exp;
using math::log;
using math::sigmoid;
using math::sin;
using math::tanh;

// The gradients of activations, from the gradient of the result and the result itself: one pass over memory,
// where elementwise operations would take three.

// A NaN result passes its gradient on, so that the problem stays visible.
template <typename T> __device__ T relu_backward(T grad, T y) { return y <= 0 ? 0 : grad; }
template <typename T> __device__ T tanh_backward(T grad, T y) { return grad * (1 - y * y); }
template <typename T> __device__ T sigmoid_backward(T grad, T y) { return grad * ((1 - y) * y); }

} // namespace element

FOR_NUMBERS(UNARY, neg)
FOR_NUMBERS(UNARY, abs)
FOR_NUMBERS(UNARY, sign)
FOR_NUMBERS(UNARY, square)
FOR_NUMBERS(UNARY, relu)
FOR_FLOATS(UNARY, floor)
FOR_FLOATS(UNARY, ceil)
FOR_FLOATS(UNARY, round)
FOR_FLOATS(UNARY, sqrt)
FOR_FLOATS(UNARY, rsqrt)
FOR_FLOATS(UNARY, reciprocal)
FOR_FLOATS(UNARY, exp)
FOR_FLOATS(UNARY, log)
FOR_FLOATS(UNARY, sin)
FOR_FLOATS(UNARY, cos)
FOR_FLOATS(UNARY, tanh)
FOR_FLOATS(UNARY, sigmoid)

FOR_FLOATS(BINARY, relu_backward)
FOR_FLOATS(BINARY, tanh_backward)
FOR_FLOATS(BINARY, sigmoid_backward)
