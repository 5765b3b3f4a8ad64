// Puzzle 06: stencil
//
// Write the sum of each element and its two neighbours on either side to
// out[i]: a[i - 2] + a[i - 1] + a[i] + a[i + 1] + a[i + 2]. What is outside
// the array counts as 0.
//
// Five threads need each element, but almost all elements may be read from
// global memory only once. So each block keeps its BLOCK elements in shared
// memory, with RADIUS more at both ends: these belong to the blocks next to
// it.

const int RADIUS = 2;

__global__ void window_sums(const float *a, float *out, int n) {
    // Your code here.
}
