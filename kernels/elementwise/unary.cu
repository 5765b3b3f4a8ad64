// Operations on each element by itself: neg, abs, …; exp, log, …; and the gradients of relu, tanh and sigmoid.
//
// They give the same bits as on the CPU. What that takes: integers wrap around, floats follow IEEE 754, and
// nothing is fused that is not written so.
#include "angle.cuh"
#include "double.cuh"
#include "elementwise.cuh"
#include "math.cuh"

// The operations on one element. In a namespace, since CUDA has functions called `abs` and `sqrt` too.
namespace element {

template <typename T> __device__ T neg(T x) { return (T)(-(wrapping<T>)x); }

// The absolute value of the smallest integer is itself: there is no larger one to hold it.
template <typename T> __device__ T abs(T x) { return x < 0 ? neg(x) : x; }
// −0.0 is not below 0, and yet its sign has to go.
template <> __device__ float abs(float x) { return fabsf(x); }
template <> __device__ double abs(double x) { return fabs(x); }
// What has no sign is not asked for it.
template <> __device__ unsigned char abs(unsigned char x) { return x; }

// 1, 0 or −1; of a NaN it is 0.
template <typename T> __device__ T sign(T x) { return (T)((x > 0) - (x < 0)); }
template <> __device__ unsigned char sign(unsigned char x) { return x > 0; }

template <typename T> __device__ T square(T x) { return (T)((wrapping<T>)x * (wrapping<T>)x); }

// Asked this way round, a NaN stays a NaN.
template <typename T> __device__ T relu(T x) { return x < 0 ? 0 : x; }
template <> __device__ unsigned char relu(unsigned char x) { return x; }

// Halves go to the even neighbour.
__device__ inline float round(float x) { return rintf(x); }
__device__ inline double round(double x) { return rint(x); }
__device__ inline float floor(float x) { return floorf(x); }
__device__ inline double floor(double x) { return ::floor(x); }
__device__ inline float ceil(float x) { return ceilf(x); }
__device__ inline double ceil(double x) { return ::ceil(x); }

// `_rn`: rounded to the nearest float, as IEEE 754 asks; the default of the compiler, but a flag could
// turn it into a faster approximation.
__device__ inline float sqrt(float x) { return __fsqrt_rn(x); }
__device__ inline double sqrt(double x) { return __dsqrt_rn(x); }
__device__ inline float reciprocal(float x) { return __frcp_rn(x); }
__device__ inline double reciprocal(double x) { return __drcp_rn(x); }
// Two roundings, as on the CPU. CUDA's `rsqrt` has one, but not the nearest.
template <typename T> __device__ T rsqrt(T x) { return reciprocal(sqrt(x)); }

// CUDA's own differ from those of the CPU in the last digit.
using math::cos;
using math::exp;
using math::log;
using math::sigmoid;
using math::sin;
using math::tanh;

// The gradients of activations, from the gradient in the result and the result itself: in one pass over
// memory what the elementwise operations would take three for.

// A NaN result passes its gradient on, so that the trouble stays visible.
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
