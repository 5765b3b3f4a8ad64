// Puzzle 11: histogram
//
// Count how often each number occurs: add to `bins[b]` the number of elements
// that are `b`. All elements are from 0 to `BINS - 1`, and all bins are 0 at
// first.
//
// Each block counts in shared memory, with `atomicAdd(&counts[b], 1)`, and
// adds its counts to the bins at the end, again with `atomicAdd`, because the
// other blocks do so as well. The launch has fewer threads than there are
// elements, so each thread takes one element after another, in steps as long
// as the grid. There can also be more bins than threads in a block.

__global__ void histogram(const int *a, int *bins, int n) {
    __shared__ int counts[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) counts[bin] = 0;
    // Your code here: wait, count, wait, and add to the bins.
}
