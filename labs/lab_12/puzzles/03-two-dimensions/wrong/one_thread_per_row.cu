// Fails: active lanes per instruction
// One thread of 16 does the work of all.
__global__ void scale_rows(const float *a, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && column == 0) {
        for (int c = 0; c < columns; c++) {
            out[row * columns + c] = row * a[row * columns + c];  // <-- here
        }
    }
}
