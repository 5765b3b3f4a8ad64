// Fails: reads of memory that nothing wrote
// Shared memory has no value at first.
__global__ void histogram(const int *a, int *bins, int n) {
    __shared__ int counts[BINS];
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) {
        atomicAdd(&counts[a[i]], 1);  // <-- here
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) atomicAdd(&bins[bin], counts[bin]);
}
