// Fails: wrong elements
// The table is that of the transposed sum.
__global__ void table_of_sums(const float *left, const float *top, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < columns) {
        out[row * columns + column] = left[column] + top[row];  // <-- here
    }
}
