// Fails: global load requests
// Each element is read from global memory five times.
const int RADIUS = 2;

__global__ void window_sums(const float *a, float *out, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) {
        float sum = 0;
        for (int j = i - RADIUS; j <= i + RADIUS; j++) {
            if (j >= 0 && j < n) sum += a[j];  // <-- here
        }
        out[i] = sum;
    }
}
