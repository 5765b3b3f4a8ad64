// Fails: races in global memory
// A row has as many elements as there are columns. Here, rows overlap.
__global__ void table_of_sums(const float *left, const float *top, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < columns) {
        out[row * rows + column] = left[row] + top[column];  // <-- here
    }
}
