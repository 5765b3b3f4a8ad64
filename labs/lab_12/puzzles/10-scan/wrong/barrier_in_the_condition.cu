// Fails: barriers that some threads miss
// Only the threads that add get to the barrier.
__global__ void running_sums(const float *a, float *out, int n) {
    __shared__ float sums[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    sums[t] = i < n ? a[i] : 0;
    __syncthreads();
    for (int step = 1; step < BLOCK; step *= 2) {
        if (t >= step) {
            float before = sums[t - step];
            __syncthreads();  // <-- here
            sums[t] += before;
        }
        __syncthreads();
    }
    if (i < n) out[i] = sums[t];
}
