// The warps add up by shuffles, and one warp adds their sums.
__global__ void dot(const float *a, const float *b, float *out, int n) {
    __shared__ float of_warps[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = i < n ? a[i] * b[i] : 0;
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < (blockDim.x + 31) / 32 ? of_warps[threadIdx.x] : 0;
        for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
        if (threadIdx.x == 0) atomicAdd(out, sum);
    }
}
