// Fails: elements with several writers
// All threads without an element write the last one.
__global__ void square(const float *a, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) i = n - 1;
    out[i] = a[i] * a[i];  // <-- here
}
