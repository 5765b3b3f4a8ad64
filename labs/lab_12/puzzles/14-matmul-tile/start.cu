// Puzzle 14: matrix product with tiles
//
// Multiply two matrices: c[row][column] is the sum of all a[row][j] *
// b[j][column]. a is m x k, b is k x n, c is m x n, all row after row.
//
// Without tiles, each element of a is read n times, and each of b m times. A
// block of TILE x TILE threads needs TILE rows of a and TILE columns of b: go
// along k in steps of TILE, copy a tile of each to shared memory (an element
// of each for every thread, and 0 outside the matrices), wait, add TILE
// products, and wait again before the next tiles.

// A block has TILE x TILE threads.
const int TILE = 16;

__global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    // Your code here.
}
