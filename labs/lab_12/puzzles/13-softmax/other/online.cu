// Maximum and sum in one pass: a new maximum rescales the sum.
__global__ void softmax(const float *a, float *out, int columns) {
    __shared__ float maxima[BLOCK], sums[BLOCK];
    const int t = threadIdx.x;
    const float *row = a + blockIdx.x * columns;
    float best = -INFINITY, sum = 0;
    for (int c = t; c < columns; c += BLOCK) {
        const float larger = fmaxf(best, row[c]);
        sum = sum * expf(best - larger) + expf(row[c] - larger);
        best = larger;
    }
    maxima[t] = best;
    sums[t] = sum;
    __syncthreads();
    for (int stride = BLOCK / 2; stride > 0; stride /= 2) {
        if (t < stride && maxima[t + stride] > -INFINITY) {
            const float larger = fmaxf(maxima[t], maxima[t + stride]);
            sums[t] = sums[t] * expf(maxima[t] - larger) + sums[t + stride] * expf(maxima[t + stride] - larger);
            maxima[t] = larger;
        }
        __syncthreads();
    }
    for (int c = t; c < columns; c += BLOCK) out[blockIdx.x * columns + c] = expf(row[c] - maxima[0]) / sums[0];
}
