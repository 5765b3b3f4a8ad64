// Case: one_block_size
//
// Each block adds up its elements. With 256 threads in a block, all sums are
// right. Somebody tried 512 to make it faster, and now half of each sum is
// missing.
#include <cstdio>
#include <vector>

#ifndef N
#define N 1000
#endif
#ifndef BLOCK
#define BLOCK 256
#endif

__global__ void block_sums(const float *a, float *out, int n) {
    __shared__ float sums[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    sums[t] = i < n ? a[i] : 0;
    __syncthreads();
    for (int stride = 128; stride > 0; stride /= 2) {
        if (t < stride) sums[t] += sums[t + stride];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = sums[0];
}

int main() {
    const int n = N, blocks = (n + BLOCK - 1) / BLOCK;
    std::vector<float> a(n), out(blocks), should_be(blocks);
    for (int i = 0; i < n; i++) {
        a[i] = i % 7 + 1;
        should_be[i / BLOCK] += a[i];
    }

    float *device_a, *device_out;
    cudaMalloc(&device_a, n * sizeof(float));
    cudaMalloc(&device_out, blocks * sizeof(float));
    cudaMemcpy(device_a, a.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    block_sums<<<blocks, BLOCK>>>(device_a, device_out, n);
    cudaMemcpy(out.data(), device_out, blocks * sizeof(float), cudaMemcpyDeviceToHost);

    int wrong = 0;
    for (int b = 0; b < blocks; b++) {
        if (out[b] != should_be[b] && wrong++ == 0) printf("first wrong: out[%d] = %g, should be %g\n", b, out[b], should_be[b]);
    }
    printf("wrong: %d of %d\n", wrong, blocks);
    cudaFree(device_a);
    cudaFree(device_out);
    return wrong > 0;
}
