// Fails: sectors per request
// The threads of a warp are not next to each other in memory.
__global__ void add_ten(const float *a, float *out) {
    int i = threadIdx.x * gridDim.x + blockIdx.x;  // <-- here
    out[i] = a[i] + 10;
}
