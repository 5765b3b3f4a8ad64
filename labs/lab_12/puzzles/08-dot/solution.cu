__global__ void dot(const float *a, const float *b, float *out, int n) {
    __shared__ float products[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    products[t] = i < n ? a[i] * b[i] : 0;
    __syncthreads();
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        if (t < stride) products[t] += products[t + stride];
        __syncthreads();
    }
    if (t == 0) atomicAdd(out, products[0]);
}
