// Selecting one of several numbers: where, clamp.
#include "elementwise.cuh"

namespace element {

// If the bounds cross, the upper one wins. With this comparison, NaN stays NaN.
template <typename T> __device__ T clamp(T x, T low, T high) {
    x = x < low ? low : x;
    return x > high ? high : x;
}

} // namespace element

// Selected values are not calculated with: halves are copied unchanged, including NaNs.
#define WHERE(operation, suffix, T)                                                                      \
    MAP_BY([](unsigned char condition, T a, T b) { return condition ? a : b; }, operation##_##suffix, T, \
           unsigned char, T, T)

#define CLAMP(operation, suffix, T) MAP(operation, suffix, T, T, T, T)

FOR_NUMBERS(WHERE, where)
FOR_NUMBERS(CLAMP, clamp)
