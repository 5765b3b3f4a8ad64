// Fails: active lanes per instruction
// One thread of 16 does the work of all.
__global__ void max_pool(const float *a, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int out_rows = rows / 2, out_columns = columns / 2;
    if (row < out_rows && column == 0) {
        for (int c = 0; c < out_columns; c++) {
            const float *corner = a + 2 * row * columns + 2 * c;
            float top = fmaxf(corner[0], corner[1]);  // <-- here
            float bottom = fmaxf(corner[columns], corner[columns + 1]);
            out[row * out_columns + c] = fmaxf(top, bottom);
        }
    }
}
