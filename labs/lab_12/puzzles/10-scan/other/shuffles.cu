// The warps scan by shuffles, and each adds the sums of the warps before it.
__global__ void running_sums(const float *a, float *out, int n) {
    __shared__ float of_warps[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    float sum = i < n ? a[i] : 0;
    for (int step = 1; step < 32; step *= 2) {
        float before = __shfl_up_sync(0xffffffff, sum, step);
        if (lane >= step) sum += before;
    }
    if (lane == 31) of_warps[warp] = sum;
    __syncthreads();
    for (int other = 0; other < warp; other++) sum += of_warps[other];
    if (i < n) out[i] = sum;
}
