#include <cstdio>
#include <cstdlib>
#define N 4096
#define BLOCK 256

__global__ void block_sum(const float *x, float *out, int n) {
    __shared__ float part[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (t < s) part[t] += part[t + s];
#ifndef RACE
        __syncthreads();
#endif
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
__global__ void warp_sum(const int *x, int *out) {
    int v = x[threadIdx.x];
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}
int main() {
    float *h = (float *)malloc(N * sizeof(float));
    for (int i = 0; i < N; i++) h[i] = 1.0f / (i + 1);
    float *d, *o;
    cudaMalloc((void **)&d, N * sizeof(float));
    cudaMalloc((void **)&o, N / BLOCK * sizeof(float));
    cudaMemcpy(d, h, N * sizeof(float), cudaMemcpyHostToDevice);
    block_sum<<<N / BLOCK, BLOCK>>>(d, o, N);
    float r[N / BLOCK];
    cudaMemcpy(r, o, sizeof(r), cudaMemcpyDeviceToHost);
    float s = 0;
    for (int i = 0; i < N / BLOCK; i++) s += r[i];
    printf("sum %.6f\n", s);
    int hx[64], *dx, *dout, total;
    for (int i = 0; i < 64; i++) hx[i] = i;
    cudaMalloc(&dx, sizeof hx);
    cudaMalloc(&dout, 4);
    cudaMemset(dout, 0, 4);
    cudaMemcpy(dx, hx, sizeof hx, cudaMemcpyHostToDevice);
    warp_sum<<<1, 64>>>(dx, dout);
    cudaMemcpy(&total, dout, 4, cudaMemcpyDeviceToHost);
    printf("total %d\n", total);
    cudaFree(d);
    cudaFree(o);
    free(h);
    return 0;
}
