// The first element of each thread is counted before the loop.
__global__ void histogram(const int *a, int *bins, int n) {
    __shared__ int counts[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) counts[bin] = 0;
    __syncthreads();
    const int step = gridDim.x * BLOCK;
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) atomicAdd(&counts[a[i]], 1);
    for (i += step; i < n; i += step) atomicAdd(&counts[a[i]], 1);
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) atomicAdd(&bins[bin], counts[bin]);
}
