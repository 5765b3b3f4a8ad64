// Puzzle 08: dot product
//
// Add the dot product of a and b, the sum of all `a[i] * b[i]`, to `out[0]`,
// which is 0 at first.
//
// All threads want to add to the same number. `atomicAdd(out, x)` does that
// without a race, but one after another. So each block adds up its products in
// shared memory first, and one of its threads calls `atomicAdd`. The loop
// halves the number of terms again and again: in each round, the first
// `stride` threads each add the term `stride` places further on to their own.

__global__ void dot(const float *a, const float *b, float *out, int n) {
    __shared__ float products[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    // Your code here.
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        // And here.
    }
    // And here.
}
