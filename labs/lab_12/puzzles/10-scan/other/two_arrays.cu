// Each step reads one array and writes the other, so that one barrier is enough.
__global__ void running_sums(const float *a, float *out, int n) {
    __shared__ float sums[2][BLOCK];
    const int t = threadIdx.x, i = blockIdx.x * BLOCK + t;
    int from = 0;
    sums[from][t] = i < n ? a[i] : 0;
    __syncthreads();
    for (int step = 1; step < BLOCK; step *= 2) {
        sums[1 - from][t] = sums[from][t] + (t >= step ? sums[from][t - step] : 0);
        from = 1 - from;
        __syncthreads();
    }
    if (i < n) out[i] = sums[from][t];
}
