// The first threads of the block read both ends.
const int RADIUS = 2;

__global__ void window_sums(const float *a, float *out, int n) {
    __shared__ float tile[BLOCK + 2 * RADIUS];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    // The tile begins RADIUS elements before the block.
    tile[threadIdx.x + RADIUS] = i < n ? a[i] : 0;
    if (threadIdx.x < RADIUS) {
        int left = i - RADIUS, right = i + BLOCK;
        tile[threadIdx.x] = left >= 0 && left < n ? a[left] : 0;
        tile[threadIdx.x + BLOCK + RADIUS] = right < n ? a[right] : 0;
    }
    __syncthreads();
    if (i < n) {
        float sum = 0;
        for (int k = 0; k <= 2 * RADIUS; k++) sum += tile[threadIdx.x + k];
        out[i] = sum;
    }
}
