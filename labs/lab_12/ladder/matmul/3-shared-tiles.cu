// Step 3: a block loads a tile of each matrix into shared memory, and each element is used 32 times there.
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
    __shared__ float a_tile[32][32];
    __shared__ float b_tile[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 32 + y;
    int col = blockIdx.x * 32 + x;
    float sum = 0.0f;
    for (int first = 0; first < n; first += 32) {
        a_tile[y][x] = a[row * n + first + x];
        b_tile[y][x] = b[(first + y) * n + col];
        __syncthreads();
        for (int k = 0; k < 32; k++) sum += a_tile[y][k] * b_tile[k][x];
        __syncthreads();
    }
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
