// Puzzle 02: guard
//
// Write the square of `a[i]` to `out[i]`.
//
// A launch consists of whole blocks, so there can be more threads than
// elements: 250 elements need four blocks of 64 threads, and 6 of these 256
// threads must not touch the arrays. The arrays have `n` elements.

__global__ void square(const float *a, float *out, int n) {
    // Your code here.
}
