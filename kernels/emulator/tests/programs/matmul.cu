#include <cstdio>
#define TILE 16
__global__ void matmul(const float *a, const float *b, float *c, int n) {
    __shared__ float as[TILE][TILE];
    __shared__ float bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < n / TILE; t++) {
        as[threadIdx.y][threadIdx.x] = a[row * n + t * TILE + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(t * TILE + threadIdx.y) * n + col];
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}
int main() {
    const int n = 256;
    static float ha[n * n], hb[n * n], hc[n * n];
    for (int i = 0; i < n * n; i += 97) { ha[i] = i % 7; hb[i] = i % 5; }
    float *a, *b, *c;
    cudaMalloc(&a, n * n * 4); cudaMalloc(&b, n * n * 4); cudaMalloc(&c, n * n * 4);
    cudaMemcpy(a, ha, n * n * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(b, hb, n * n * 4, cudaMemcpyHostToDevice);
#ifndef NOLAUNCH
    matmul<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(a, b, c, n);
#endif
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaMemcpy(hc, c, n * n * 4, cudaMemcpyDeviceToHost);
    printf("%g %g\n", hc[0], hc[n * n - 1]);
}
