// Arithmetic on each element by itself: neg, abs, …; add, sub, …; and the gradients of activations.
//
// They give the same bits as on the CPU. What that takes: integers wrap around, floats follow IEEE 754, and
// nothing is fused that is not written so.
#include "elementwise.cuh"

// The operations on one element. In a namespace, since CUDA has functions called `abs` and `sqrt` too.
namespace element {

template <typename T> __device__ T add(T a, T b) { return (T)((wrapping<T>)a + (wrapping<T>)b); }
template <typename T> __device__ T sub(T a, T b) { return (T)((wrapping<T>)a - (wrapping<T>)b); }
template <typename T> __device__ T mul(T a, T b) { return (T)((wrapping<T>)a * (wrapping<T>)b); }
template <typename T> __device__ T div(T a, T b) { return a / b; }

// A NaN on either side stays a NaN. CUDA's own `fmaxf` would return the other number. Only a NaN differs
// from itself.
template <typename T> __device__ T maximum(T a, T b) { return a > b || a != a ? a : b; }
template <typename T> __device__ T minimum(T a, T b) { return a < b || a != a ? a : b; }

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

// Of the sign of b, as Python has it, for a b above 0. C++ has that of a.
__device__ inline long long remainder(long long a, long long b) {
    const long long rest = a % b;
    return rest < 0 ? rest + b : rest;
}

template <typename T> __device__ T square(T x) { return mul(x, x); }
template <typename T> __device__ T cube(T x) { return mul(mul(x, x), x); }

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

// The gradients of activations, from the gradient in the result and the result itself: in one pass over
// memory what the elementwise operations would take three for.

// A NaN result passes its gradient on, so that the trouble stays visible.
template <typename T> __device__ T relu_backward(T grad, T y) { return y <= 0 ? 0 : grad; }
template <typename T> __device__ T tanh_backward(T grad, T y) { return grad * (1 - y * y); }
template <typename T> __device__ T sigmoid_backward(T grad, T y) { return grad * ((1 - y) * y); }

// From x itself: of a result that is 0 it could not be told where it came from, if the slope is.
template <typename T> __device__ T leaky_relu(T x, T slope) { return x > 0 ? x : x * slope; }
template <typename T> __device__ T leaky_relu_backward(T grad, T x, T slope) { return x > 0 ? grad : grad * slope; }

} // namespace element

FOR_NUMBERS(BINARY, add)
FOR_NUMBERS(BINARY, sub)
FOR_NUMBERS(BINARY, mul)
FOR_NUMBERS(BINARY, maximum)
FOR_NUMBERS(BINARY, minimum)
FOR_FLOATS(BINARY, div)
BINARY(remainder, i64, long long)

// Halves by a number, which is not rounded to a half before.
#define BY_NUMBER(operation, suffix, T)                                                                         \
    extern "C" __global__ void operation##_number_##suffix(INPUT(T, x), INPUT(double, number), OUTPUT(T, out)) { \
        elementwise([](float x, double number) { return element::operation(x, (float)number); }, out, out_view, \
                    READ(x), READ(number));                                                                     \
    }

FOR_HALVES(BY_NUMBER, mul)
FOR_HALVES(BY_NUMBER, div)

FOR_NUMBERS(UNARY, neg)
FOR_NUMBERS(UNARY, abs)
FOR_NUMBERS(UNARY, sign)
FOR_NUMBERS(UNARY, square)
FOR_NUMBERS(UNARY, relu)
UNARY(cube, f32, float)
UNARY(cube, f64, double)
FOR_FLOATS(UNARY, floor)
FOR_FLOATS(UNARY, ceil)
FOR_FLOATS(UNARY, round)
FOR_FLOATS(UNARY, sqrt)
FOR_FLOATS(UNARY, rsqrt)
FOR_FLOATS(UNARY, reciprocal)

FOR_FLOATS(BINARY, relu_backward)
FOR_FLOATS(BINARY, tanh_backward)
FOR_FLOATS(BINARY, sigmoid_backward)

// The slope is of the type that elements are calculated with.
#define LEAKY(operation, suffix, T)                                                                             \
    extern "C" __global__ void operation##_##suffix(INPUT(T, x), INPUT(calculated<T>, slope), OUTPUT(T, out)) { \
        using C = calculated<T>;                                                                                \
        elementwise([](C x, C slope) { return element::operation(x, slope); }, out, out_view, READ(x),          \
                    READ(slope));                                                                               \
    }                                                                                                           \
    extern "C" __global__ void operation##_backward_##suffix(INPUT(T, grad), INPUT(T, x),                       \
                                                             INPUT(calculated<T>, slope), OUTPUT(T, out)) {     \
        using C = calculated<T>;                                                                                \
        elementwise([](C grad, C x, C slope) { return element::operation##_backward(grad, x, slope); }, out,    \
                    out_view, READ(grad), READ(x), READ(slope));                                                \
    }

FOR_FLOATS(LEAKY, leaky_relu)
