// Fails: shared load requests
// Each thread adds all elements before its own: 128 steps instead of seven.
__global__ void running_sums(const float *a, float *out, int n) {
    __shared__ float sums[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    sums[t] = i < n ? a[i] : 0;
    __syncthreads();
    float sum = 0;
    for (int j = 0; j <= t; j++) sum += sums[j];  // <-- here
    if (i < n) out[i] = sum;
}
