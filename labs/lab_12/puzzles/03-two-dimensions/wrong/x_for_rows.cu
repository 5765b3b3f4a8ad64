// Fails: wrong elements, rectangles
// The grid covers rows in the direction y, and a square hides it.
__global__ void scale_rows(const float *a, float *out, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;  // <-- here
    int column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) {
        out[row * columns + column] = row * a[row * columns + column];
    }
}
