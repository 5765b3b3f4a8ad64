// Puzzle 09: reduction
//
// Write the sum of each block's elements to `out[blockIdx.x]`. This kernel
// does, and is slow.
//
// A warp whose threads take different branches goes through both, so the
// threads that still add should be next to each other. Threads of a warp that
// access different words of the same memory bank wait for each other, so their
// words should be next to each other as well. And two barriers where one is
// enough cost time. Change the loop.

__global__ void block_sums(const float *a, float *out, int n) {
    __shared__ float sums[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    sums[t] = i < n ? a[i] : 0;
    __syncthreads();
    for (int stride = 1; stride < BLOCK; stride *= 2) {
        if (t % (2 * stride) == 0) sums[t] += sums[t + stride];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = sums[0];
}
