// The warps add up by shuffles, and one warp adds their sums.
__global__ void block_sums(const float *a, float *out, int n) {
    __shared__ float of_warps[32];
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    float sum = i < n ? a[i] : 0;
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = threadIdx.x < (BLOCK + 31) / 32 ? of_warps[threadIdx.x] : 0;
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
