// Step 1: each thread computes an element. Neighbouring threads are in the same column, so the loads of a warp from `a`
// are a whole row apart.
#include <cstdio>
#include <vector>

// The emulator runs a small product. For a real GPU: nvcc -DN=1024
#ifndef N
#define N 64
#endif

static_assert(N % 32 == 0, "N is a multiple of 32");

// Small whole numbers: their products and sums are exact in any order.
__host__ __device__ float value(int i) { return i % 7 - 3; }

__global__ void fill(float *a, float *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n * n) {
        a[i] = value(i);
        b[i] = value(3 * i + 1);
    }
}

__global__ void matmul(const float *a, const float *b, float *c, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

int main() {
    float *a, *b, *c;
    cudaMalloc(&a, N * N * sizeof(float));
    cudaMalloc(&b, N * N * sizeof(float));
    cudaMalloc(&c, N * N * sizeof(float));
    fill<<<(N * N + 255) / 256, 256>>>(a, b, N);

    const dim3 threads(32, 32);
    const dim3 blocks(N / 32, N / 32);
    matmul<<<blocks, threads>>>(a, b, c, N);

    std::vector<float> result(N * N);
    cudaMemcpy(result.data(), c, N * N * sizeof(float), cudaMemcpyDeviceToHost);
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    // Every 61st element: their rows and columns are all different ones.
    int wrong = 0;
    for (int i = 0; i < N * N; i += 61) {
        int row = i / N, col = i % N;
        float sum = 0.0f;
        for (int k = 0; k < N; k++) sum += value(row * N + k) * value(3 * (k * N + col) + 1);
        wrong += result[i] != sum;
    }
    printf("%d elements are wrong\n", wrong);
    cudaFree(a);
    cudaFree(b);
    cudaFree(c);
    return wrong == 0 ? 0 : 1;
}
