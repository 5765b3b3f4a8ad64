// Fails: sectors per request
// Threads with successive numbers take elements below each other.
__global__ void max_pool(const float *a, float *out, int rows, int columns) {
    int row = blockIdx.y * blockDim.y + threadIdx.x;  // <-- here
    int column = blockIdx.x * blockDim.x + threadIdx.y;
    int out_rows = rows / 2, out_columns = columns / 2;
    if (row < out_rows && column < out_columns) {
        const float *corner = a + 2 * row * columns + 2 * column;
        float top = fmaxf(corner[0], corner[1]);
        float bottom = fmaxf(corner[columns], corner[columns + 1]);
        out[row * out_columns + column] = fmaxf(top, bottom);
    }
}
