// Puzzle 04: broadcast
//
// Fill a table of sums: the element in a row and a column is
// `left[row] + top[column]`.
//
// In PyTorch, that is `left[:, None] + top[None, :]`. The table has `rows`
// rows of `columns` elements; `left` has an element for each row, `top` one
// for each column. The grid is that of puzzle 03.

__global__ void table_of_sums(const float *left, const float *top, float *out, int rows, int columns) {
    // Your code here.
}
