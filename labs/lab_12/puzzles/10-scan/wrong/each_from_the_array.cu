// Fails: global load requests
// Each thread reads all elements before its own from global memory.
__global__ void running_sums(const float *a, float *out, int n) {
    int first = blockIdx.x * BLOCK;
    int i = first + threadIdx.x;
    if (i < n) {
        float sum = 0;
        for (int j = first; j <= i; j++) sum += a[j];  // <-- here
        out[i] = sum;
    }
}
