// A tile in shared memory, a static and a dynamic array, and a barrier that two warps meet at.
struct Cell {
    int row;
    float value;
};

__global__ void tiles(float *out) {
    __shared__ float tile[4][17];
    __shared__ Cell last;
    extern __shared__ int counts[];
    int x = threadIdx.x, y = threadIdx.y;
    counts[threadIdx.y * 16 + threadIdx.x] = 1;
    tile[y][x] = 10 * y + x;
    if (x == 15 && y == 3) {
        last.row = y;
        last.value = 0.5f;
    }
    __syncthreads();
    int all = __syncthreads_count(x < 8);
    const float &opposite = tile[3 - y][15 - x];
    atomicAdd(&counts[0], 1);
    out[y * 16 + x] = opposite + last.value + all;
}

int main() {
    float *out;
    cudaMalloc(&out, 64 * sizeof(float));
    tiles<<<2, dim3(16, 4), 64 * sizeof(int)>>>(out);
    cudaDeviceSynchronize();
    cudaFree(out);
}
