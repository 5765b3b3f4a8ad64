// Fails: barriers that some threads miss
// The threads without an element never get to the barrier.
__global__ void ranks(const float *a, int *out, int n) {
    __shared__ float tile[BLOCK];
    int first = blockIdx.x * BLOCK;
    int i = first + threadIdx.x;
    if (i < n) {
        tile[threadIdx.x] = a[i];
        __syncthreads();  // <-- here
        int count = min(BLOCK, n - first);
        int smaller = 0;
        for (int j = 0; j < count; j++) smaller += tile[j] < tile[threadIdx.x];
        out[i] = smaller;
    }
}
