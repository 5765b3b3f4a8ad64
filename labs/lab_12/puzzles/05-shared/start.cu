// Puzzle 05: shared memory
//
// For each element, count the smaller elements in its block, and write that
// number to `out[i]`.
//
// Each element is needed by all threads of its block, but it may be read from
// global memory only once. So the block first copies its elements to `tile`,
// an array in shared memory with one place for each thread: `BLOCK` is the
// number of threads of a block. All threads wait for each other at
// `__syncthreads();` before they read what others wrote; every thread of the
// block has to get there. That much is done: go through the `count` elements
// of the tile. The last block can have fewer elements than threads.

__global__ void ranks(const float *a, int *out, int n) {
    __shared__ float tile[BLOCK];
    int first = blockIdx.x * BLOCK;  // the first element of the block
    int count = min(BLOCK, n - first);  // the number of its elements
    int i = first + threadIdx.x;
    if (i < n) tile[threadIdx.x] = a[i];
    __syncthreads();
    // Your code here.
}
