// Fails: divergent branches
// In each warp, some threads add and some do not.
__global__ void block_sums(const float *a, float *out, int n) {
    __shared__ float sums[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    sums[t] = i < n ? a[i] : 0;
    __syncthreads();
    for (int stride = 1; stride < BLOCK; stride *= 2) {
        if (t % (2 * stride) == 0) sums[t] += sums[t + stride];  // <-- here
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = sums[0];
}
