// Fails: races in shared memory
// A warp reads what the other warps may not have written yet.
const int TILE = 32;
// A block has TILE x ROWS_AT_ONCE threads.
const int ROWS_AT_ONCE = 32;

__global__ void transpose(const float *a, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE + 1];
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    if (row < rows && column < columns) tile[threadIdx.y][threadIdx.x] = a[row * columns + column];
    // Row and column of the output.
    row = blockIdx.x * TILE + threadIdx.y;
    column = blockIdx.y * TILE + threadIdx.x;
    if (row < columns && column < rows) out[row * rows + column] = tile[threadIdx.x][threadIdx.y];  // <-- here
}
