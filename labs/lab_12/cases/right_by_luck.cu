// Case: right_by_luck
//
// Each block adds up its elements, and the last block adds up the sums of all.
// The result has been right in every test. It is wrong once in a while, on some
// GPUs only, and a barrier at the end of the kernel changes nothing.
#include <cstdio>
#include <vector>

#ifndef N
#define N 1000
#endif
#ifndef BLOCK
#define BLOCK 128
#endif

__global__ void sum(const float *a, float *of_blocks, float *out, int n) {
    __shared__ float of_threads[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    of_threads[threadIdx.x] = i < n ? a[i] : 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        float of_block = 0;
        for (int t = 0; t < BLOCK; t++) of_block += of_threads[t];
        of_blocks[blockIdx.x] = of_block;
        if (blockIdx.x == gridDim.x - 1) {
            float all = 0;
            for (int b = 0; b < gridDim.x; b++) all += of_blocks[b];
            *out = all;
        }
    }
}

int main() {
    const int n = N, blocks = (n + BLOCK - 1) / BLOCK;
    std::vector<float> a(n);
    float should_be = 0, found = 0;
    for (int i = 0; i < n; i++) {
        a[i] = i % 7;
        should_be += a[i];
    }

    float *device_a, *of_blocks, *out;
    cudaMalloc(&device_a, n * sizeof(float));
    cudaMalloc(&of_blocks, blocks * sizeof(float));
    cudaMalloc(&out, sizeof(float));
    cudaMemset(out, 0, sizeof(float));
    cudaMemcpy(device_a, a.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    sum<<<blocks, BLOCK>>>(device_a, of_blocks, out, n);
    cudaMemcpy(&found, out, sizeof(float), cudaMemcpyDeviceToHost);

    if (found != should_be) printf("first wrong: the sum is %g, should be %g\n", found, should_be);
    printf("wrong: %d of 1\n", found != should_be);
    cudaFree(device_a);
    cudaFree(of_blocks);
    cudaFree(out);
    return found != should_be;
}
