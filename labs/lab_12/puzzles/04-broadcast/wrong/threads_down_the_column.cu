// Fails: sectors per store request
// Threads with successive numbers write elements below each other.
__global__ void table_of_sums(const float *left, const float *top, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.x;  // <-- here
    int column = blockIdx.x * blockDim.x + threadIdx.y;
    if (row < rows && column < columns) {
        out[row * columns + column] = left[row] + top[column];
    }
}
