// Elementwise arithmetic on two tensors: add, sub, …
#include "elementwise.cuh"

namespace element {

// Integers wrap around, as on the CPU.
template <typename T> __device__ T add(T a, T b) { return (T)((wrapping<T>)a + (wrapping<T>)b); }
template <typename T> __device__ T sub(T a, T b) { return (T)((wrapping<T>)a - (wrapping<T>)b); }
template <typename T> __device__ T mul(T a, T b) { return (T)((wrapping<T>)a * (wrapping<T>)b); }
template <typename T> __device__ T div(T a, T b) { return a / b; }

// NaN if either input is NaN. CUDA's own `fmaxf` would return the other number. Only a NaN differs from itself.
template <typename T> __device__ T maximum(T a, T b) { return a > b || a != a ? a : b; }
template <typename T> __device__ T minimum(T a, T b) { return a < b || a != a ? a : b; }

} // namespace element

FOR_NUMBERS(BINARY, add)
FOR_NUMBERS(BINARY, sub)
FOR_NUMBERS(BINARY, mul)
FOR_FLOATS(BINARY, div)
FOR_NUMBERS(BINARY, maximum)
FOR_NUMBERS(BINARY, minimum)
