// Step 3: the first half of the block adds the second half. The lanes that work are neighbours, so whole warps work
// or idle.
#include <cstdio>

// The emulator runs a small sum. For a real GPU: nvcc -DN=16777216
#ifndef N
#define N 65536
#endif

__global__ void fill(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i % 3;
}

__global__ void reduce(const float *x, float *sum, int n) {
    __shared__ float part[256];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) atomicAdd(sum, part[0]);
}

int main() {
    float *x, *sum;
    cudaMalloc(&x, N * sizeof(float));
    cudaMalloc(&sum, sizeof(float));
    fill<<<(N + 255) / 256, 256>>>(x, N);
    cudaMemset(sum, 0, sizeof(float));

    const int threads = 256;
    const int blocks = (N + threads - 1) / threads;
    reduce<<<blocks, threads>>>(x, sum, N);

    float result;
    cudaMemcpy(&result, sum, sizeof(float), cudaMemcpyDeviceToHost);
    // 0 + 1 + 2 for each three elements. Whole numbers below 2^24 are exact in any order.
    float expected = N / 3 * 3 + (N % 3 == 2);
    printf("sum %.0f, expected %.0f\n", result, expected);
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    cudaFree(x);
    cudaFree(sum);
    return result == expected ? 0 : 1;
}
