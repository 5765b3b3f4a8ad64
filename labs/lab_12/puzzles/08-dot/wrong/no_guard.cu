// Fails: reads outside an array
// The last block has threads without an element.
__global__ void dot(const float *a, const float *b, float *out, int n) {
    __shared__ float products[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    products[t] = a[i] * b[i];  // <-- here
    __syncthreads();
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        if (t < stride) products[t] += products[t + stride];
        __syncthreads();
    }
    if (t == 0) atomicAdd(out, products[0]);
}
