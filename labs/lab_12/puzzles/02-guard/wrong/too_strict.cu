// Fails: elements that nothing writes
// The last element is n - 1, and it is less than n.
__global__ void square(const float *a, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1) out[i] = a[i] * a[i];  // <-- here
}
