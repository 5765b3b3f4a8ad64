// Fails: barriers that some threads miss
// Only the threads that add get to the barrier.
__global__ void block_sums(const float *a, float *out, int n) {
    __shared__ float sums[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    sums[t] = i < n ? a[i] : 0;
    __syncthreads();
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        if (t < stride) {
            sums[t] += sums[t + stride];
            __syncthreads();  // <-- here
        }
    }
    if (t == 0) out[blockIdx.x] = sums[0];
}
