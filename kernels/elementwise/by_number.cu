// Products and quotients of halves and a scalar, which is not rounded to a half first.
#include "elementwise.cuh"

namespace element {

__device__ inline float mul_number(float x, double number) { return x * (float)number; }
__device__ inline float div_number(float x, double number) { return x / (float)number; }

} // namespace element

#define BY_NUMBER(operation, suffix, T) MAP(operation, suffix, T, T, double)

FOR_HALVES(BY_NUMBER, mul_number)
FOR_HALVES(BY_NUMBER, div_number)
