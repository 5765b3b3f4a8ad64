// Puzzle 01: map
//
// Write `a[i] + 10` to `out[i]`, with one thread for each element.
//
// The launch has several blocks, and together as many threads as there are
// elements. A thread finds its element by the number of its block, the number
// of threads of a block, and its own number within the block: `blockIdx.x`,
// `blockDim.x`, `threadIdx.x`.

__global__ void add_ten(const float *a, float *out) {
    // Your code here.
}
