// Fails: wrong elements, ragged end
// The last block does nothing, unless all of its threads have an element.
__global__ void square(const float *a, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if ((blockIdx.x + 1) * blockDim.x <= n) out[i] = a[i] * a[i];  // <-- here
}
