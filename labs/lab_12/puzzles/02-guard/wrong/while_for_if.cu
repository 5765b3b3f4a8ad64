// Fails: launches that do not end
// Nothing in the loop changes i.
__global__ void square(const float *a, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (i < n) {
        out[i] = a[i] * a[i];  // <-- here
    }
}
