// Fails: active lanes per instruction
// All threads but one wait.
__global__ void block_sums(const float *a, float *out, int n) {
    __shared__ float sums[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    sums[t] = i < n ? a[i] : 0;
    __syncthreads();
    if (t == 0) {
        for (int j = 1; j < BLOCK; j++) sums[0] += sums[j];  // <-- here
    }
    if (t == 0) out[blockIdx.x] = sums[0];
}
