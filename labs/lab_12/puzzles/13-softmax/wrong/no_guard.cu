// Fails: reads outside an array
// There can be fewer columns than threads.
__global__ void softmax(const float *a, float *out, int columns) {
    __shared__ float of_threads[BLOCK];
    int t = threadIdx.x;
    const float *row = a + blockIdx.x * columns;
    float best = row[t];  // <-- here
    for (int c = t; c < columns; c += BLOCK) best = fmaxf(best, row[c]);
    of_threads[t] = best;
    __syncthreads();
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        if (t < stride) of_threads[t] = fmaxf(of_threads[t], of_threads[t + stride]);
        __syncthreads();
    }
    best = of_threads[0];
    // All have read the maximum before the array is used again.
    __syncthreads();
    float sum = 0;
    for (int c = t; c < columns; c += BLOCK) sum += expf(row[c] - best);
    of_threads[t] = sum;
    __syncthreads();
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        if (t < stride) of_threads[t] += of_threads[t + stride];
        __syncthreads();
    }
    sum = of_threads[0];
    for (int c = t; c < columns; c += BLOCK) {
        out[blockIdx.x * columns + c] = expf(row[c] - best) / sum;
    }
}
