// Fails: writes outside an array
// The first element is 0, and the last one is past the end.
__global__ void table_of_sums(const float *left, const float *top, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < columns) {
        out[row * columns + column + 1] = left[row] + top[column];  // <-- here
    }
}
