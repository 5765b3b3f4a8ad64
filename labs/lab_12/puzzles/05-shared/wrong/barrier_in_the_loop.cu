// Fails: barriers, by warp
// One barrier is enough: nothing is written after it.
__global__ void ranks(const float *a, int *out, int n) {
    __shared__ float tile[BLOCK];
    int first = blockIdx.x * BLOCK;
    int i = first + threadIdx.x;
    float mine = i < n ? a[i] : 0;
    tile[threadIdx.x] = mine;
    int count = min(BLOCK, n - first);
    int smaller = 0;
    for (int j = 0; j < count; j++) {
        __syncthreads();  // <-- here
        smaller += tile[j] < mine;
    }
    if (i < n) out[i] = smaller;
}
