// Fails: races in global memory
// A row has as many elements as there are columns. Here, rows overlap.
__global__ void scale_rows(const float *a, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < columns) {
        out[row * rows + column] = row * a[row * rows + column];  // <-- here
    }
}
