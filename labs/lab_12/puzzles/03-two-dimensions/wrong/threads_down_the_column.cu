// Fails: sectors per request
// Threads with successive numbers take elements below each other.
__global__ void scale_rows(const float *a, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.x;  // <-- here
    int column = blockIdx.x * blockDim.x + threadIdx.y;
    if (row < rows && column < columns) {
        out[row * columns + column] = row * a[row * columns + column];
    }
}
