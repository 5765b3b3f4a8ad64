// Fails: wrong elements, fractions
// An int has no fraction.
__global__ void add_ten(const float *a, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = a[i];  // <-- here
    out[i] = x + 10;
}
