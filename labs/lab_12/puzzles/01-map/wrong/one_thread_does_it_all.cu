// Fails: active lanes per instruction
// Thread 0 loops over all elements, the others have nothing to do.
__global__ void add_ten(const float *a, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) {
        for (int j = 0; j < gridDim.x * blockDim.x; j++) out[j] = a[j] + 10;  // <-- here
    }
}
