// Fails: global atomic requests
// Each warp goes to memory, not each block.
__global__ void dot(const float *a, const float *b, float *out, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) atomicAdd(out, a[i] * b[i]);  // <-- here
}
