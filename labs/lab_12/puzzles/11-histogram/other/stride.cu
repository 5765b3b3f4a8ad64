// A while loop, and bins that only those with a count are added to.
__global__ void histogram(const int *a, int *bins, int n) {
    __shared__ int counts[BINS];
    const int t = threadIdx.x, threads = blockDim.x;
    for (int bin = t; bin < BINS; bin += threads) {
        counts[bin] = 0;
    }
    __syncthreads();
    int i = blockIdx.x * threads + t;
    while (i < n) {
        const int bin = a[i];
        atomicAdd(counts + bin, 1);
        i += threads * gridDim.x;
    }
    __syncthreads();
    for (int bin = t; bin < BINS; bin += threads) {
        if (counts[bin] > 0) atomicAdd(bins + bin, counts[bin]);
    }
}
