// Fails: reads of memory that nothing wrote
// Nothing fills the end of the tile.
const int RADIUS = 2;

__global__ void window_sums(const float *a, float *out, int n) {
    __shared__ float tile[BLOCK + 2 * RADIUS];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    // The tile begins RADIUS elements before the block.
    tile[threadIdx.x + RADIUS] = i < n ? a[i] : 0;
    if (threadIdx.x < RADIUS) {
        tile[threadIdx.x] = i >= RADIUS && i - RADIUS < n ? a[i - RADIUS] : 0;
    }
    __syncthreads();
    if (i < n) {
        float sum = 0;
        for (int k = 0; k <= 2 * RADIUS; k++) sum += tile[threadIdx.x + k];  // <-- here
        out[i] = sum;
    }
}
