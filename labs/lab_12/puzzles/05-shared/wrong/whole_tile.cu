// Fails: reads of memory that nothing wrote
// The last block has fewer elements than the tile.
__global__ void ranks(const float *a, int *out, int n) {
    __shared__ float tile[BLOCK];
    int first = blockIdx.x * BLOCK;
    int i = first + threadIdx.x;
    if (i < n) tile[threadIdx.x] = a[i];
    __syncthreads();
    if (i < n) {
        int smaller = 0;
        for (int j = 0; j < BLOCK; j++) smaller += tile[j] < tile[threadIdx.x];  // <-- here
        out[i] = smaller;
    }
}
