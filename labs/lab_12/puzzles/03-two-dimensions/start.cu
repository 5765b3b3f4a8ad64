// Puzzle 03: two dimensions
//
// Multiply each row of a matrix by its number: row 0 by 0, row 1 by 1, and so
// on.
//
// The matrix has `rows` rows of `columns` elements, one row after another in
// memory, so the element in a row and a column is `a[row * columns + column]`.
// Blocks have 16 × 16 threads. The grid's x direction covers the columns, and
// y covers the rows: `blockIdx.y`, `blockDim.y` and `threadIdx.y` do for rows
// what their `.x` namesakes do for columns. There can be too many threads in
// both directions.

__global__ void scale_rows(const float *a, float *out, int rows, int columns) {
    // Your code here.
}
