// Fails: elements with several writers
// Each element is written as often as there are threads.
__global__ void add_ten(const float *a, float *out) {
    for (int i = 0; i < gridDim.x * blockDim.x; i++) out[i] = a[i] + 10;  // <-- here
}
