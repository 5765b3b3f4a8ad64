// Your own program: change it, or paste another one.
#include <cstdio>

__global__ void scale(float *x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = factor * x[i];
}

int main() {
    const int n = 100;
    float *x;
    cudaMallocManaged(&x, n * sizeof(float));
    for (int i = 0; i < n; i++) x[i] = i;

    int threads = 32, blocks = (n + threads - 1) / threads;
    scale<<<blocks, threads>>>(x, 2.5f, n);
    cudaDeviceSynchronize();

    printf("x[%d] = %g\n", n - 1, x[n - 1]);
    cudaFree(x);
}
