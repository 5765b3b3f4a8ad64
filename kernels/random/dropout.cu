// Dropout.
#include "elementwise.cuh"

namespace element {

// Scales up the elements that are kept, so that the expected sum stays the same.
template <typename T> __device__ T masked_scale(T x, unsigned char keep, T scale) { return x * (keep ? scale : 0); }

} // namespace element

#define MASKED_SCALE(operation, suffix, T) MAP(operation, suffix, T, T, unsigned char, T)

FOR_FLOATS(MASKED_SCALE, masked_scale)
