// Fails: sectors per load request
// A warp reads a column of the input.
const int TILE = 32;
// A block has TILE x ROWS_AT_ONCE threads.
const int ROWS_AT_ONCE = 32;

__global__ void transpose(const float *a, float *out, int rows, int columns) {
    int row = blockIdx.y * TILE + threadIdx.x;
    int column = blockIdx.x * TILE + threadIdx.y;
    if (row < rows && column < columns) out[column * rows + row] = a[row * columns + column];  // <-- here
}
