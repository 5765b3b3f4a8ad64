// Fails: wrong elements, negative numbers
// Zero is larger than any negative number.
__global__ void max_pool(const float *a, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int out_rows = rows / 2, out_columns = columns / 2;
    if (row < out_rows && column < out_columns) {
        float best = 0;  // <-- here
        for (int y = 0; y < 2; y++) {
            for (int x = 0; x < 2; x++) best = fmaxf(best, a[(2 * row + y) * columns + 2 * column + x]);
        }
        out[row * out_columns + column] = best;
    }
}
