// Lanes take different branches, and some end early.
__global__ void branches(int *out, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    int x;
    if (i % 2 == 0) {
        x = i * i;
    } else if (i < 8) {
        x = -i;
    } else {
        int far = i - 8;
        x = far;
    }
    out[i] = x;
}

int main() {
    int *out;
    cudaMalloc(&out, 20 * sizeof(int));
    branches<<<1, 32>>>(out, 20);
    cudaDeviceSynchronize();
    cudaFree(out);
}
