// Comparisons: eq, lt, …
#include "elementwise.cuh"

// A bool is a byte, 1 or 0. Nothing equals NaN, and nothing is larger or smaller.
namespace element {

template <typename T> __device__ unsigned char eq(T a, T b) { return a == b; }
template <typename T> __device__ unsigned char ne(T a, T b) { return a != b; }
template <typename T> __device__ unsigned char lt(T a, T b) { return a < b; }
template <typename T> __device__ unsigned char le(T a, T b) { return a <= b; }
template <typename T> __device__ unsigned char gt(T a, T b) { return a > b; }
template <typename T> __device__ unsigned char ge(T a, T b) { return a >= b; }

} // namespace element

#define COMPARE(operation, suffix, T) MAP(operation, suffix, unsigned char, T, T)

FOR_NUMBERS(COMPARE, eq)
FOR_NUMBERS(COMPARE, ne)
FOR_NUMBERS(COMPARE, lt)
FOR_NUMBERS(COMPARE, le)
FOR_NUMBERS(COMPARE, gt)
FOR_NUMBERS(COMPARE, ge)
