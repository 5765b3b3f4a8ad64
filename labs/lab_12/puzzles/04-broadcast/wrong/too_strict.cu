// Fails: elements that nothing writes
// The last row is rows - 1, and it is less than rows.
__global__ void table_of_sums(const float *left, const float *top, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows - 1 && column < columns) {
        out[row * columns + column] = left[row] + top[column];  // <-- here
    }
}
