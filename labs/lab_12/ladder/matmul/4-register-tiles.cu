// Step 4: each thread computes 4 × 4 elements. Of 8 loads from shared memory it makes 16 products.
#include <cstdio>
#include <vector>

// The emulator runs a small product. For a real GPU: nvcc -DN=1024
#ifndef N
#define N 64
#endif

static_assert(N % 64 == 0, "N is a multiple of 64");

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
    __shared__ float a_tile[64][16];
    __shared__ float b_tile[16][64];
    int x = threadIdx.x, y = threadIdx.y;
    int t = y * 16 + x;
    int row = blockIdx.y * 64;
    int col = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int first = 0; first < n; first += 16) {
        for (int i = 0; i < 4; i++) {
            a_tile[y + 16 * i][x] = a[(row + y + 16 * i) * n + first + x];
            b_tile[t / 64 + 4 * i][t % 64] = b[(first + t / 64 + 4 * i) * n + col + t % 64];
        }
        __syncthreads();
        for (int k = 0; k < 16; k++) {
            float a_part[4], b_part[4];
            for (int i = 0; i < 4; i++) {
                a_part[i] = a_tile[y + 16 * i][k];
                b_part[i] = b_tile[k][x + 16 * i];
            }
            for (int i = 0; i < 4; i++) {
                for (int j = 0; j < 4; j++) sum[i][j] += a_part[i] * b_part[j];
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) c[(row + y + 16 * i) * n + col + x + 16 * j] = sum[i][j];
    }
}

int main() {
    float *a, *b, *c;
    cudaMalloc(&a, N * N * sizeof(float));
    cudaMalloc(&b, N * N * sizeof(float));
    cudaMalloc(&c, N * N * sizeof(float));
    fill<<<(N * N + 255) / 256, 256>>>(a, b, N);

    const dim3 threads(16, 16);
    const dim3 blocks(N / 64, N / 64);
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
