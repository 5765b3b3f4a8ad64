// A loop whose step is the whole grid works for any number of blocks.
__global__ void square(const float *a, float *out, int n) {
    const int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        out[i] = powf(a[i], 2);
    }
}
