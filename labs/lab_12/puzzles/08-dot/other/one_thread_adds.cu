// Thread 0 adds the products of its block one after another.
__global__ void dot(const float *a, const float *b, float *out, int n) {
    __shared__ float products[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    products[t] = i < n ? a[i] * b[i] : 0;
    __syncthreads();
    if (t == 0) {
        float sum = 0;
        for (int j = 0; j < BLOCK; j++) sum += products[j];
        atomicAdd(&out[0], sum);
    }
}
