// A maximum and a sum by shuffles.
__device__ float of_block(float value, bool is_sum, float *of_warps) {
    for (int offset = 16; offset > 0; offset /= 2) {
        float other = __shfl_xor_sync(0xffffffff, value, offset);
        value = is_sum ? value + other : fmaxf(value, other);
    }
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
    __syncthreads();
    float all = of_warps[0];
    for (int warp = 1; warp < (BLOCK + 31) / 32; warp++) {
        all = is_sum ? all + of_warps[warp] : fmaxf(all, of_warps[warp]);
    }
    return all;
}

__global__ void softmax(const float *a, float *out, int columns) {
    __shared__ float maxima[32], sums[32];
    const float *row = a + blockIdx.x * columns;
    float best = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) best = fmaxf(best, row[c]);
    best = of_block(best, false, maxima);
    for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += expf(row[c] - best);
    sum = of_block(sum, true, sums);
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        out[blockIdx.x * columns + c] = expf(row[c] - best) / sum;
    }
}
