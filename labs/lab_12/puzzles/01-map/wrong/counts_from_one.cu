// Fails: reads outside an array
// The last thread is one element too far.
__global__ void add_ten(const float *a, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
    out[i] = a[i] + 10;  // <-- here
}
