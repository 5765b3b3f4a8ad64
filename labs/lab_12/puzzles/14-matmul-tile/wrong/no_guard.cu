// Fails: reads outside an array
// Tiles stick out of the matrices.
// A block has TILE x TILE threads.
const int TILE = 16;

__global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int first = 0; first < k; first += TILE) {
        a_tile[y][x] = a[row * k + first + x];
        b_tile[y][x] = b[(first + y) * n + column];  // <-- here
        __syncthreads();
        for (int j = 0; j < TILE; j++) sum += a_tile[y][j] * b_tile[j][x];
        // All have read the tiles before they are written again.
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
