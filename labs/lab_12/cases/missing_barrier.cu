// Case: missing_barrier
//
// Each block writes its elements in reverse order, through an array in shared
// memory. With blocks of one thread, that works. With larger ones, some
// elements are wrong, and on a real GPU not the same ones in each run.
#include <cstdio>
#include <vector>

#ifndef N
#define N 1024
#endif
#ifndef BLOCK
#define BLOCK 128
#endif

__global__ void reverse_blocks(const float *a, float *out, int n) {
    __shared__ float tile[BLOCK];
    int first = blockIdx.x * BLOCK;
    int count = min(BLOCK, n - first);
    if (threadIdx.x < count) tile[threadIdx.x] = a[first + threadIdx.x];
    if (threadIdx.x < count) out[first + threadIdx.x] = tile[count - 1 - threadIdx.x];
}

int main() {
    const int n = N;
    std::vector<float> a(n), out(n);
    for (int i = 0; i < n; i++) a[i] = i + 1;

    float *device_a, *device_out;
    cudaMalloc(&device_a, n * sizeof(float));
    cudaMalloc(&device_out, n * sizeof(float));
    cudaMemcpy(device_a, a.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    reverse_blocks<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(device_a, device_out, n);
    cudaMemcpy(out.data(), device_out, n * sizeof(float), cudaMemcpyDeviceToHost);

    int wrong = 0;
    for (int i = 0; i < n; i++) {
        int first = i / BLOCK * BLOCK;
        int count = n - first < BLOCK ? n - first : BLOCK;
        float should_be = a[first + count - 1 - (i - first)];
        if (out[i] != should_be && wrong++ == 0) printf("first wrong: out[%d] = %g, should be %g\n", i, out[i], should_be);
    }
    printf("wrong: %d of %d\n", wrong, n);
    cudaFree(device_a);
    cudaFree(device_out);
    return wrong > 0;
}
