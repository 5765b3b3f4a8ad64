// Operations on each element by itself: neg, abs, …; add, sub, ….
//
// They give the same bits as on the CPU. What that takes: integers wrap around, floats follow IEEE 754, and
// nothing is fused that is not written so.
#include "common.cuh"

// In C++ a signed integer must not overflow; an unsigned one wraps around. So integers are added as unsigned
// ones, which gives the same bits. Floats are added as they are.
template <typename T> struct Wrapping { using type = T; };
template <> struct Wrapping<long long> { using type = unsigned long long; };
template <> struct Wrapping<int> { using type = unsigned int; };
template <> struct Wrapping<unsigned char> { using type = unsigned int; };
template <typename T> using wrapping = typename Wrapping<T>::type;

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

template <typename T> __device__ T square(T x) { return mul(x, x); }

// Asked this way round, a NaN stays a NaN.
template <typename T> __device__ T relu(T x) { return x < 0 ? 0 : x; }
template <> __device__ unsigned char relu(unsigned char x) { return x; }

// `_rn`: rounded to the nearest float, as IEEE 754 asks; the default of the compiler, but a flag could
// turn it into a faster approximation.
__device__ inline float sqrt(float x) { return __fsqrt_rn(x); }
__device__ inline double sqrt(double x) { return __dsqrt_rn(x); }
__device__ inline float reciprocal(float x) { return __frcp_rn(x); }
__device__ inline double reciprocal(double x) { return __drcp_rn(x); }

} // namespace element

// A kernel is a loop over the elements of the output. Its name cannot be a template's, since the launch looks
// it up by name: `extern "C"` makes the name in the program the one that is written here. The macros write
// the same loop for every operation and type.

// neg_f32(const float *x, float x_value, View x_view, float *out, View out_view)
#define UNARY(operation, suffix, T)                                                     \
    extern "C" __global__ void operation##_##suffix(INPUT(T, x), OUTPUT(T, out)) {      \
        const long long n = elements(out_view);                                         \
        for (long long i = first_element(); i < n; i += all_threads()) {                \
            out[position(out_view, i)] = element::operation(load(x, x_value, x_view, i)); \
        }                                                                               \
    }

// add_f32(const float *a, float a_value, View a_view, const float *b, float b_value, View b_view,
//         float *out, View out_view)
#define BINARY(operation, suffix, T)                                                                \
    extern "C" __global__ void operation##_##suffix(INPUT(T, a), INPUT(T, b), OUTPUT(T, out)) {     \
        const long long n = elements(out_view);                                                     \
        for (long long i = first_element(); i < n; i += all_threads()) {                            \
            out[position(out_view, i)] =                                                            \
                element::operation(load(a, a_value, a_view, i), load(b, b_value, b_view, i));       \
        }                                                                                           \
    }

#define FOR_FLOATS(KERNEL, operation) \
    KERNEL(operation, f32, float)     \
    KERNEL(operation, f64, double)

#define FOR_NUMBERS(KERNEL, operation)  \
    FOR_FLOATS(KERNEL, operation)       \
    KERNEL(operation, i64, long long)   \
    KERNEL(operation, i32, int)         \
    KERNEL(operation, u8, unsigned char)

FOR_NUMBERS(BINARY, add)
FOR_NUMBERS(BINARY, sub)
FOR_NUMBERS(BINARY, mul)
FOR_NUMBERS(BINARY, maximum)
FOR_NUMBERS(BINARY, minimum)
FOR_FLOATS(BINARY, div)

FOR_NUMBERS(UNARY, neg)
FOR_NUMBERS(UNARY, abs)
FOR_NUMBERS(UNARY, sign)
FOR_NUMBERS(UNARY, square)
FOR_NUMBERS(UNARY, relu)
FOR_FLOATS(UNARY, sqrt)
FOR_FLOATS(UNARY, reciprocal)
