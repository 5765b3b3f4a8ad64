// Fails: reads of memory that nothing wrote
// The output has no value yet that one could add to.
__global__ void add_ten(const float *a, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] += a[i] + 10;  // <-- here
}
