// Fails: sectors per store request
// A warp writes a column of the output.
const int TILE = 32;
// A block has TILE x ROWS_AT_ONCE threads.
const int ROWS_AT_ONCE = 32;

__global__ void transpose(const float *a, float *out, int rows, int columns) {
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    if (row < rows && column < columns) out[column * rows + row] = a[row * columns + column];  // <-- here
}
