// Each thread begins with its own element.
__global__ void ranks(const float *a, int *out, int n) {
    __shared__ float tile[BLOCK];
    int first = blockIdx.x * BLOCK;
    int i = first + threadIdx.x;
    if (i < n) tile[threadIdx.x] = a[i];
    __syncthreads();
    if (i < n) {
        int count = min(BLOCK, n - first);
        int smaller = 0;
        for (int j = 0; j < count; j++) smaller += tile[(threadIdx.x + j) % count] < tile[threadIdx.x];
        out[i] = smaller;
    }
}
