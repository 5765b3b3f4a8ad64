// Fails: bank conflicts
// The words of a warp are 2, 4, 8 ... apart, so that they share banks.
__global__ void block_sums(const float *a, float *out, int n) {
    __shared__ float sums[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    sums[t] = i < n ? a[i] : 0;
    __syncthreads();
    for (int stride = 1; stride < BLOCK; stride *= 2) {
        int at = 2 * stride * t;
        if (at < BLOCK) sums[at] += sums[at + stride];  // <-- here
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = sums[0];
}
