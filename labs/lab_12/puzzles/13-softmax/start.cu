// Puzzle 13: softmax
//
// Write the softmax of each row: out[c] = exp(a[c] - m) / s, where m is the
// largest element of the row and s is the sum of all exp(a[c] - m) of the row.
//
// There is a block for each row, so the row's first element is a[blockIdx.x *
// columns]. A row can have more or fewer elements than a block has threads:
// each thread takes every BLOCK-th column. Find the maximum and the sum with
// the tree of puzzle 09, in one array of shared memory. Mind the barrier
// between the two. -INFINITY is smaller than all other numbers; without
// subtracting m, expf(100) is infinite.

__global__ void softmax(const float *a, float *out, int columns) {
    // Your code here.
}
