// Puzzle 12: transpose without bank conflicts
//
// Transpose a matrix: `out[column * rows + row] = a[row * columns + column]`.
//
// Either the reads or the writes jump by whole rows, unless a tile of 32 × 32
// elements is turned in shared memory: a warp reads a row of `a` and writes it
// to a row of the tile; after the barrier, it reads a column of the tile and
// writes it to a row of the output. The tile at (x, y) of `a` is the one at
// (y, x) of the output. A column of 32 elements must not lie in a single one
// of the 32 memory banks: make the rows of the tile one element longer.

const int TILE = 32;
// A block has TILE x ROWS_AT_ONCE threads. You may use fewer rows at once.
const int ROWS_AT_ONCE = 32;

__global__ void transpose(const float *a, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    if (row < rows && column < columns) tile[threadIdx.y][threadIdx.x] = a[row * columns + column];
    // The place in the output.
    int out_row = blockIdx.x * TILE + threadIdx.y;
    int out_column = blockIdx.y * TILE + threadIdx.x;
    // Your code here, and one change above.
}
