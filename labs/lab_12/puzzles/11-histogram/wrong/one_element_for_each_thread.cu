// Fails: wrong elements, more elements than threads
// Nobody counts the elements after those of the threads.
__global__ void histogram(const int *a, int *bins, int n) {
    __shared__ int counts[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) counts[bin] = 0;
    __syncthreads();
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) atomicAdd(&counts[a[i]], 1);  // <-- here
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) atomicAdd(&bins[bin], counts[bin]);
}
