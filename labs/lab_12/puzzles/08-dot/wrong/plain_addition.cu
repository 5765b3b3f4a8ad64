// Fails: races in global memory
// Threads read and write the same number without an order.
__global__ void dot(const float *a, const float *b, float *out, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) *out += a[i] * b[i];  // <-- here
}
