// Fails: elements that nothing writes
// Only the first 16 rows are written.
__global__ void scale_rows(const float *a, float *out, int rows, int columns) {
    int row = threadIdx.y;  // <-- here
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < columns) {
        out[row * columns + column] = row * a[row * columns + column];
    }
}
