// Powers with a scalar exponent.
#include "elementwise.cuh"
#include "pow.cuh"

namespace element {

template <typename T> __device__ T cube(T x) { return x * x * x; }

using math::pow;

} // namespace element

UNARY(cube, f32, float)
UNARY(cube, f64, double)
FOR_FLOATS(BINARY, pow)
