// Asks the device for its memory, its order and its time.
#include <cstdio>

__constant__ float factor;

__global__ void scale(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}

int main() {
    const int n = 1 << 16, bytes = n * sizeof(float);
    float two = 2, milliseconds, *x, *pinned, *huge;
    size_t free, total;
    cudaEvent_t start, copied, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&copied);
    cudaEventCreate(&stop);
    cudaMalloc(&x, bytes);
    cudaMallocHost(&pinned, bytes);
    for (int i = 0; i < n; i++) pinned[i] = i;
    cudaMemcpyToSymbol(factor, &two, sizeof two);
    cudaEventRecord(start);
    cudaMemcpyAsync(x, pinned, bytes, cudaMemcpyHostToDevice);
    cudaEventRecord(copied);
    scale<<<n / 256, 256>>>(x, n);
    cudaEventRecord(stop);
    printf("%d ", cudaEventQuery(stop));
    cudaEventSynchronize(stop);
    printf("%d\n", cudaEventQuery(stop));
    cudaEventElapsedTime(&milliseconds, start, copied);
    printf("copy: %g ms\n", milliseconds);
    cudaEventElapsedTime(&milliseconds, copied, stop);
    printf("kernel: %g ms\n", milliseconds);
    cudaMemGetInfo(&free, &total);
    printf("%zu of %zu bytes are free\n", free, total);
    printf("%s\n", cudaGetErrorName(cudaMalloc(&huge, 8ull << 30)));
    printf("%s\n", cudaGetErrorName(cudaMalloc(&huge, 20ull << 30)));
    cudaFree(x);
    cudaFreeHost(pinned);
}
