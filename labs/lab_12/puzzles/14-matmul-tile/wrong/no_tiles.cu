// Fails: global load requests
// Each product reads two elements from global memory.
// A block has TILE x TILE threads.
const int TILE = 16;

__global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    if (row < m && column < n) {
        float sum = 0;
        for (int j = 0; j < k; j++) sum += a[row * k + j] * b[j * n + column];  // <-- here
        c[row * n + column] = sum;
    }
}
