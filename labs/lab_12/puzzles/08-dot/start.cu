// Puzzle 08: dot product
//
// Add the dot product of a and b, the sum of all a[i] * b[i], to out[0], which
// is 0 at first.
//
// All threads want to add to the same number. atomicAdd(out, x) does that
// without a race, but one after another. So each block adds up its products in
// shared memory first, and one of its threads calls atomicAdd. For the sum of
// a block, halve the number of summands again and again: the first half of the
// threads each add a summand of the second half to their own. BLOCK is a power
// of two.

__global__ void dot(const float *a, const float *b, float *out, int n) {
    // Your code here.
}
