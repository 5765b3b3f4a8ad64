// Puzzle 09: reduction
//
// Write the sum of each block's elements to out[blockIdx.x].
//
// That is the tree of puzzle 08, but how you build it matters now. A warp
// whose threads take different branches goes through both, so the threads that
// still add should be next to each other. Threads of a warp that access
// different words of the same memory bank wait for each other, so their words
// should be next to each other as well. And two barriers where one is enough
// cost time.

__global__ void block_sums(const float *a, float *out, int n) {
    // Your code here.
}
