// Puzzle 07: pooling
//
// Halve a matrix in both directions: each element of the output is the largest
// of a square of 2 × 2 elements. That is PyTorch's `max_pool2d(a, 2)`.
//
// The matrix has `rows` rows of `columns` elements. The output has `rows / 2`
// rows of `columns / 2` elements: an odd row or column at the end is left out.
// There is a thread for each element of the output, as in puzzle 03.
// `fmaxf(x, y)` is the larger of two numbers.

__global__ void max_pool(const float *a, float *out, int rows, int columns) {
    // Your code here.
}
