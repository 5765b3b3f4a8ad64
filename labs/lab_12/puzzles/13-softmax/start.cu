// Puzzle 13: softmax
//
// Write the softmax of each row: `out[c] = exp(a[c] - m) / s`, where `m` is the
// largest element of the row and `s` is the sum of all `exp(a[c] - m)`.
//
// There is a block for each row. A row can have more or fewer elements than a
// block has threads: each thread takes every `BLOCK`-th column. The maximum is
// done; find the sum with the same array in shared memory, and mind the
// barrier between the two. Without subtracting `m`, `expf(100)` is infinite.

__global__ void softmax(const float *a, float *out, int columns) {
    __shared__ float of_threads[BLOCK];
    int t = threadIdx.x;
    const float *row = a + blockIdx.x * columns;
    float m = -INFINITY;
    for (int c = t; c < columns; c += BLOCK) m = fmaxf(m, row[c]);
    of_threads[t] = m;
    __syncthreads();
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        if (t < stride) of_threads[t] = fmaxf(of_threads[t], of_threads[t + stride]);
        __syncthreads();
    }
    m = of_threads[0];
    float s = 0;
    for (int c = t; c < columns; c += BLOCK) {
        // Your code here.
    }
    // And here.
}
