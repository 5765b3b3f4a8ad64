// Fails: active lanes per instruction
// All threads but one wait.
__global__ void running_sums(const float *a, float *out, int n) {
    __shared__ float sums[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    sums[t] = i < n ? a[i] : 0;
    __syncthreads();
    if (t == 0) {
        float sum = 0;
        for (int j = 0; j < BLOCK; j++) {
            sum += sums[j];  // <-- here
            sums[j] = sum;
        }
    }
    __syncthreads();
    if (i < n) out[i] = sums[t];
}
