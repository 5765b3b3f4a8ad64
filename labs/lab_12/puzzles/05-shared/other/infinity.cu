// The tile is filled up with a number that is smaller than none.
__global__ void ranks(const float *a, int *out, int n) {
    __shared__ float tile[BLOCK];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float mine = i < n ? a[i] : INFINITY;
    tile[threadIdx.x] = mine;
    __syncthreads();
    if (i >= n) return;
    int smaller = 0;
#pragma unroll 4
    for (int j = 0; j < BLOCK; j++) {
        if (tile[j] < mine) smaller++;
    }
    out[i] = smaller;
}
