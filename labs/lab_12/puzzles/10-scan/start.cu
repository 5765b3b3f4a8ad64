// Puzzle 10: scan
//
// Write running sums: `out[i]` is the sum of the elements of the block up to
// and including `a[i]`. That is PyTorch's `cumsum` for each block.
//
// Hillis and Steele: in the first step, each thread adds the sum one place
// before its own; in the next, the one two places before; then four, eight,
// and so on. After seven steps, 128 running sums are done. A thread must not
// write its sum while another still wants to read the old one. So read into a
// variable, wait, add, and wait again: all threads wait, also those that have
// nothing to add.

__global__ void running_sums(const float *a, float *out, int n) {
    __shared__ float sums[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    sums[t] = i < n ? a[i] : 0;
    __syncthreads();
    for (int step = 1; step < BLOCK; step *= 2) {
        // Your code here.
    }
    if (i < n) out[i] = sums[t];
}
