// Fails: wrong elements
// A copy.
__global__ void add_ten(const float *a, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = a[i];  // <-- here
}
