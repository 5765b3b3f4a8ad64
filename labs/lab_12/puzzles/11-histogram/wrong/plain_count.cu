// Fails: races in shared memory
// Two threads can count the same number at once.
__global__ void histogram(const int *a, int *bins, int n) {
    __shared__ int counts[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) counts[bin] = 0;
    __syncthreads();
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) {
        counts[a[i]]++;  // <-- here
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) atomicAdd(&bins[bin], counts[bin]);
}
