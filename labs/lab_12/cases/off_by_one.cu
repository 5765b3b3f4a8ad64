// Case: off_by_one
//
// Each element of the output is the difference between an element and the one
// after it; for the last element, it is 0. All results are right. But the
// program that calls this kernel crashes once in a while.
#include <cstdio>
#include <vector>

#ifndef N
#define N 1000
#endif
#ifndef BLOCK
#define BLOCK 128
#endif

__global__ void differences(const float *a, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float next = a[i + 1];
        out[i] = i < n - 1 ? next - a[i] : 0;
    }
}

int main() {
    const int n = N;
    std::vector<float> a(n), out(n);
    for (int i = 0; i < n; i++) a[i] = i * i % 101;

    float *device_a, *device_out;
    cudaMalloc(&device_a, n * sizeof(float));
    cudaMalloc(&device_out, n * sizeof(float));
    cudaMemcpy(device_a, a.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    differences<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(device_a, device_out, n);
    cudaMemcpy(out.data(), device_out, n * sizeof(float), cudaMemcpyDeviceToHost);

    int wrong = 0;
    for (int i = 0; i < n; i++) {
        float should_be = i < n - 1 ? a[i + 1] - a[i] : 0;
        if (out[i] != should_be && wrong++ == 0) printf("first wrong: out[%d] = %g, should be %g\n", i, out[i], should_be);
    }
    printf("wrong: %d of %d\n", wrong, n);
    cudaFree(device_a);
    cudaFree(device_out);
    return wrong > 0;
}
