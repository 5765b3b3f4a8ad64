// Step 5: the lanes of a warp pass their sums from register to register. Shared memory holds one sum for each warp,
// and one barrier is enough.
#include <cstdio>

// The emulator runs a small sum. For a real GPU: nvcc -DN=16777216
#ifndef N
#define N 65536
#endif

__global__ void fill(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = i % 3;
}

// The sum over the lanes of a warp, in lane 0.
__device__ float warp_sum(float v) {
    for (int s = 16; s > 0; s /= 2) v += __shfl_down_sync(0xffffffff, v, s);
    return v;
}

__global__ void reduce(const float *x, float *sum, int n) {
    __shared__ float part[32];
    int t = threadIdx.x;
    int i = blockIdx.x * (2 * blockDim.x) + t;
    int j = i + blockDim.x;
    float first = i < n ? x[i] : 0.0f;
    float second = j < n ? x[j] : 0.0f;
    float v = warp_sum(first + second);
    if (t % 32 == 0) part[t / 32] = v;
    __syncthreads();
    if (t < 32) {
        v = warp_sum(t < blockDim.x / 32 ? part[t] : 0.0f);
        if (t == 0) atomicAdd(sum, v);
    }
}

int main() {
    float *x, *sum;
    cudaMalloc(&x, N * sizeof(float));
    cudaMalloc(&sum, sizeof(float));
    fill<<<(N + 255) / 256, 256>>>(x, N);
    cudaMemset(sum, 0, sizeof(float));

    const int threads = 256;
    const int blocks = (N + 2 * threads - 1) / (2 * threads);
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
