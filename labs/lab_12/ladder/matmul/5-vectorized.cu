// Step 5: each load and store moves four floats, so a thread can afford 8 × 4 elements: 32 products take 3 loads from
// shared memory. The tile of `a` is transposed for that.
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

__device__ const float4 &four(const float *p) { return *(const float4 *)p; }

__global__ void matmul(const float *a, const float *b, float *c, int n) {
    // Four more floats in each row, so that a column is not in one bank.
    __shared__ __align__(16) float a_tile[16][64 + 4];
    __shared__ __align__(16) float b_tile[16][64];
    int x = threadIdx.x, y = threadIdx.y;
    int t = y * 16 + x;
    int row = blockIdx.y * 64;
    int col = blockIdx.x * 64;
    float sum[8][4] = {};
    for (int first = 0; first < n; first += 16) {
        for (int i = 0; i < 2; i++) {
            int r = t / 4 + 32 * i, k = t % 4 * 4;
            float4 load = four(&a[(row + r) * n + first + k]);
            a_tile[k + 0][r] = load.x;
            a_tile[k + 1][r] = load.y;
            a_tile[k + 2][r] = load.z;
            a_tile[k + 3][r] = load.w;
        }
        for (int i = 0; i < 2; i++) {
            int k = t / 16 + 8 * i, j = t % 16 * 4;
            *(float4 *)&b_tile[k][j] = four(&b[(first + k) * n + col + j]);
        }
        __syncthreads();
        for (int k = 0; k < 16; k++) {
            float4 p = four(&a_tile[k][8 * y]), q = four(&a_tile[k][8 * y + 4]);
            float4 v = four(&b_tile[k][4 * x]);
            float a_part[8] = {p.x, p.y, p.z, p.w, q.x, q.y, q.z, q.w};
            float b_part[4] = {v.x, v.y, v.z, v.w};
            for (int i = 0; i < 8; i++) {
                for (int j = 0; j < 4; j++) sum[i][j] += a_part[i] * b_part[j];
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; i++) {
        float4 out = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
        *(float4 *)&c[(row + 8 * y + i) * n + col + 4 * x] = out;
    }
}

int main() {
    float *a, *b, *c;
    cudaMalloc(&a, N * N * sizeof(float));
    cudaMalloc(&b, N * N * sizeof(float));
    cudaMalloc(&c, N * N * sizeof(float));
    fill<<<(N * N + 255) / 256, 256>>>(a, b, N);

    const dim3 threads(16, 8);
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
