// Fails: wrong elements, fractions
// An int has no fraction.
__global__ void table_of_sums(const float *left, const float *top, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column < columns) {
        int sum = left[row] + top[column];  // <-- here
        out[row * columns + column] = sum;
    }
}
