// Fails: writes outside an array
// The threads without an element write their 0.
__global__ void square(const float *a, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = i < n ? a[i] : 0;
    out[i] = x * x;  // <-- here
}
