// Fails: global load requests
// Each thread reads all elements of its block from global memory.
__global__ void ranks(const float *a, int *out, int n) {
    int first = blockIdx.x * BLOCK;
    int i = first + threadIdx.x;
    if (i < n) {
        int count = min(BLOCK, n - first);
        int smaller = 0;
        for (int j = 0; j < count; j++) smaller += a[first + j] < a[i];  // <-- here
        out[i] = smaller;
    }
}
