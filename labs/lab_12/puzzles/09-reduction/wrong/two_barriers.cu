// Fails: barriers, by warp
// A thread adds to its own summand only, so one barrier is enough.
__global__ void block_sums(const float *a, float *out, int n) {
    __shared__ float sums[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    sums[t] = i < n ? a[i] : 0;
    __syncthreads();
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        float other = t < stride ? sums[t + stride] : 0;
        __syncthreads();  // <-- here
        sums[t] += other;
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = sums[0];
}
