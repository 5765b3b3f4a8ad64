// exp, log, sin, cos, tanh, sigmoid and pow of each element.
#include "angle.cuh"
#include "double.cuh"
#include "elementwise.cuh"
#include "math.cuh"
#include "pow.cuh"

namespace element = math;

FOR_FLOATS(UNARY, exp)
FOR_FLOATS(UNARY, log)
FOR_FLOATS(UNARY, sin)
FOR_FLOATS(UNARY, cos)
FOR_FLOATS(UNARY, tanh)
FOR_FLOATS(UNARY, sigmoid)
FOR_FLOATS(BINARY, pow)
