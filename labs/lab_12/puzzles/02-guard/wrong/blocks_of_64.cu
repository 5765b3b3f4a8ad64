// Fails: wrong elements, other block sizes
// The size of a block is written into the kernel.
__global__ void square(const float *a, float *out, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;  // <-- here
    if (i < n) out[i] = a[i] * a[i];
}
