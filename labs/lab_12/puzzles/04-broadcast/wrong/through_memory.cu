// Fails: global load requests
// The sum is stored, read again, and stored again.
__global__ void table_of_sums(const float *left, const float *top, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < columns) {
        out[row * columns + column] = left[row];
        out[row * columns + column] += top[column];  // <-- here
    }
}
