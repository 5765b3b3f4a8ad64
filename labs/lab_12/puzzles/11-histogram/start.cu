// Puzzle 11: histogram
//
// Count how often each number occurs: add to bins[b] the number of elements
// that are b. All elements are from 0 to BINS - 1, and all bins are 0 at
// first.
//
// Each block counts in shared memory with atomicAdd(&counts[b], 1), and adds
// its counts to the bins at the end, again with atomicAdd, because the other
// blocks do so as well. The launch has fewer threads than there are elements:
// let each thread take every (gridDim.x * BLOCK)th element. There can also be
// more bins than threads in a block.

__global__ void histogram(const int *a, int *bins, int n) {
    // Your code here.
}
