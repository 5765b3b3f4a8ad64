// Puzzle 06: stencil
//
// Write the sum of each element and its two neighbours on either side to
// `out[i]`: `a[i - 2] + a[i - 1] + a[i] + a[i + 1] + a[i + 2]`. Everything
// outside the array counts as 0.
//
// Five threads need each element, but almost all elements may be read from
// global memory only once. So each block keeps its `BLOCK` elements in shared
// memory, plus `RADIUS` more at each end: these belong to the blocks next to
// it. The loop below goes through all places of the tile; fill each of them,
// wait, and add. Element `i` of the array is at `tile[threadIdx.x + RADIUS]`.

const int RADIUS = 2;

__global__ void window_sums(const float *a, float *out, int n) {
    __shared__ float tile[BLOCK + 2 * RADIUS];
    for (int j = threadIdx.x; j < BLOCK + 2 * RADIUS; j += BLOCK) {
        int from = blockIdx.x * BLOCK + j - RADIUS;  // may be outside the array
        // Your code here.
    }
    int i = blockIdx.x * BLOCK + threadIdx.x;
    // And here.
}
