// Puzzle 14: matrix product with tiles
//
// Multiply two matrices: `c[row][column]` is the sum of all
// `a[row][j] * b[j][column]`. `a` is m × k, `b` is k × n, `c` is m × n, all row
// after row.
//
// Without tiles, each element of `a` is read n times, and each of `b` m times.
// A block needs `TILE` rows of `a` and `TILE` columns of `b`. It goes along k
// in steps of `TILE`: each thread copies an element to each tile, or 0 outside
// the matrices; wait, add `TILE` products, and wait again before the next
// tiles.

// A block has TILE x TILE threads.
const int TILE = 16;

__global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int first = 0; first < k; first += TILE) {
        int a_column = first + x, b_row = first + y;  // what this thread copies
        // Your code here.
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
