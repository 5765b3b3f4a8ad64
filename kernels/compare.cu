// Comparisons, and what is chosen by them: eq, lt, …; where, clamp.
#include "elementwise.cuh"

// A truth is a byte, 1 or 0. Nothing equals a NaN, and nothing is larger or smaller than one.
namespace element {

template <typename T> __device__ unsigned char eq(T a, T b) { return a == b; }
template <typename T> __device__ unsigned char ne(T a, T b) { return a != b; }
template <typename T> __device__ unsigned char lt(T a, T b) { return a < b; }
template <typename T> __device__ unsigned char le(T a, T b) { return a <= b; }
template <typename T> __device__ unsigned char gt(T a, T b) { return a > b; }
template <typename T> __device__ unsigned char ge(T a, T b) { return a >= b; }

// When the bounds cross, the upper one wins. Asked this way round, a NaN stays a NaN.
template <typename T> __device__ T clamp(T x, T low, T high) {
    x = x < low ? low : x;
    return x > high ? high : x;
}

} // namespace element

#define COMPARE(operation, suffix, T)                                                                    \
    extern "C" __global__ void operation##_##suffix(INPUT(T, a), INPUT(T, b), OUTPUT(unsigned char, out)) { \
        elementwise([](calculated<T> a, calculated<T> b) { return element::operation(a, b); }, out, out_view, READ(a), \
                    READ(b));                                                                            \
    }

FOR_NUMBERS(COMPARE, eq)
FOR_NUMBERS(COMPARE, ne)
FOR_NUMBERS(COMPARE, lt)
FOR_NUMBERS(COMPARE, le)
FOR_NUMBERS(COMPARE, gt)
FOR_NUMBERS(COMPARE, ge)

#define WHERE(operation, suffix, T)                                                                  \
    extern "C" __global__ void operation##_##suffix(INPUT(unsigned char, condition), INPUT(T, a), INPUT(T, b), \
                                                    OUTPUT(T, out)) {                                \
        elementwise([](unsigned char condition, T a, T b) { return condition ? a : b; }, out, out_view, \
                    READ(condition), READ(a), READ(b));                                              \
    }

FOR_NUMBERS(WHERE, where)

#define CLAMP(operation, suffix, T)                                                                        \
    extern "C" __global__ void operation##_##suffix(INPUT(T, x), INPUT(T, low), INPUT(T, high), OUTPUT(T, out)) { \
        using C = calculated<T>;                                                                           \
        elementwise([](C x, C low, C high) { return element::operation(x, low, high); }, out, out_view,    \
                    READ(x), READ(low), READ(high));                                                       \
    }

FOR_NUMBERS(CLAMP, clamp)
