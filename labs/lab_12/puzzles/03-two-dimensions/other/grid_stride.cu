// Loops over the grid in both directions.
__global__ void scale_rows(const float *a, float *out, int rows, int columns) {
    for (int row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += gridDim.y * blockDim.y) {
        for (int column = blockIdx.x * blockDim.x + threadIdx.x; column < columns; column += gridDim.x * blockDim.x) {
            out[row * columns + column] = row * a[row * columns + column];
        }
    }
}
