// Fails: barriers that some threads miss
// Some threads have one element less than others.
__global__ void histogram(const int *a, int *bins, int n) {
    __shared__ int counts[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) counts[bin] = 0;
    __syncthreads();
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) {
        atomicAdd(&counts[a[i]], 1);
        __syncthreads();  // <-- here
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) atomicAdd(&bins[bin], counts[bin]);
}
