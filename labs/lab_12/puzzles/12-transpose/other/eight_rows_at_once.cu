// A block of 32 x 8 threads, each of which moves four elements.
const int TILE = 32;
const int ROWS_AT_ONCE = 8;

__global__ void transpose(const float *a, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE + 1];
    const int column = blockIdx.x * TILE + threadIdx.x, top = blockIdx.y * TILE;
    for (int y = threadIdx.y; y < TILE; y += ROWS_AT_ONCE) {
        if (top + y < rows && column < columns) tile[y][threadIdx.x] = a[(top + y) * columns + column];
    }
    __syncthreads();
    const int out_column = blockIdx.y * TILE + threadIdx.x, out_top = blockIdx.x * TILE;
    for (int y = threadIdx.y; y < TILE; y += ROWS_AT_ONCE) {
        if (out_top + y < columns && out_column < rows) {
            out[(out_top + y) * rows + out_column] = tile[threadIdx.x][y];
        }
    }
}
