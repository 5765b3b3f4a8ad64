// Fails: reads of memory that nothing wrote
// The threads without an element leave their summand as it is.
__global__ void block_sums(const float *a, float *out, int n) {
    __shared__ float sums[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    if (i < n) sums[t] = a[i];
    __syncthreads();
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        if (t < stride) sums[t] += sums[t + stride];  // <-- here
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = sums[0];
}
