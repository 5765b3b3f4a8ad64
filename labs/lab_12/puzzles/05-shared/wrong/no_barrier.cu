// Fails: races in shared memory
// A thread reads elements that another warp may not have written yet.
__global__ void ranks(const float *a, int *out, int n) {
    __shared__ float tile[BLOCK];
    int first = blockIdx.x * BLOCK;
    int i = first + threadIdx.x;
    if (i < n) tile[threadIdx.x] = a[i];
    if (i < n) {
        int count = min(BLOCK, n - first);
        int smaller = 0;
        for (int j = 0; j < count; j++) smaller += tile[j] < tile[threadIdx.x];  // <-- here
        out[i] = smaller;
    }
}
