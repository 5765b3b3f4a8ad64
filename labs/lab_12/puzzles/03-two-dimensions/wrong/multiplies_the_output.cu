// Fails: reads of memory that nothing wrote
// The output has no value yet that one could multiply.
__global__ void scale_rows(const float *a, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < columns) {
        out[row * columns + column] *= row;  // <-- here
    }
}
