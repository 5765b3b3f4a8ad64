// Fails: reads outside an array
// The last block has threads without an element.
__global__ void square(const float *a, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i] * a[i];  // <-- here
}
