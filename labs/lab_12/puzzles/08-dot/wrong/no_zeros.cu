// Fails: reads of memory that nothing wrote
// The threads without an element leave their summand as it is.
__global__ void dot(const float *a, const float *b, float *out, int n) {
    __shared__ float products[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    if (i < n) products[t] = a[i] * b[i];
    __syncthreads();
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        if (t < stride) products[t] += products[t + stride];  // <-- here
        __syncthreads();
    }
    if (t == 0) atomicAdd(out, products[0]);
}
