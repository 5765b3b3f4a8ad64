const int RADIUS = 2;

__global__ void window_sums(const float *a, float *out, int n) {
    __shared__ float tile[BLOCK + 2 * RADIUS];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    // The tile begins RADIUS elements before the block.
    for (int j = threadIdx.x; j < BLOCK + 2 * RADIUS; j += BLOCK) {
        int from = blockIdx.x * BLOCK + j - RADIUS;
        tile[j] = from >= 0 && from < n ? a[from] : 0;
    }
    __syncthreads();
    if (i < n) {
        float sum = 0;
        for (int k = 0; k <= 2 * RADIUS; k++) sum += tile[threadIdx.x + k];
        out[i] = sum;
    }
}
