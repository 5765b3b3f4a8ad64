// Reverses 64 numbers: the threads of a block exchange them through shared memory.
#include <cstdio>

__global__ void reverse(int *x) {
    __shared__ int tile[64];
    int i = threadIdx.x;
    tile[i] = x[i];
    __syncthreads(); // wait here for the other threads of the block
    x[i] = tile[63 - i];
}

int main() {
    int *x;
    cudaMallocManaged(&x, 64 * sizeof(int));
    for (int i = 0; i < 64; i++) {
        x[i] = i;
    }
    reverse<<<1, 64>>>(x);
    cudaDeviceSynchronize();
    printf("%d %d %d ... %d\n", x[0], x[1], x[2], x[63]);
    return 0;
}
