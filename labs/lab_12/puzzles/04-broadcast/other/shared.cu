// Each block reads its parts of both vectors once.
__global__ void table_of_sums(const float *left, const float *top, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float lefts[16], tops[16];
    if (threadIdx.x == 0 && row < rows) lefts[threadIdx.y] = left[row];
    if (threadIdx.y == 0 && column < columns) tops[threadIdx.x] = top[column];
    __syncthreads();
    if (row < rows && column < columns) {
        out[row * columns + column] = lefts[threadIdx.y] + tops[threadIdx.x];
    }
}
