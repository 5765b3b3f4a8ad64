// The elements of a row of the tile are permuted instead of padded.
const int TILE = 32;
// A block has TILE x ROWS_AT_ONCE threads.
const int ROWS_AT_ONCE = 32;

__global__ void transpose(const float *a, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    if (row < rows && column < columns) tile[threadIdx.y][threadIdx.x ^ threadIdx.y] = a[row * columns + column];
    __syncthreads();
    // Row and column of the output.
    row = blockIdx.x * TILE + threadIdx.y;
    column = blockIdx.y * TILE + threadIdx.x;
    if (row < columns && column < rows) out[row * rows + column] = tile[threadIdx.x][threadIdx.y ^ threadIdx.x];
}
