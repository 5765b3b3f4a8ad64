// Fails: global atomic requests
// Each element goes to global memory.
__global__ void histogram(const int *a, int *bins, int n) {
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) {
        atomicAdd(&bins[a[i]], 1);  // <-- here
    }
}
