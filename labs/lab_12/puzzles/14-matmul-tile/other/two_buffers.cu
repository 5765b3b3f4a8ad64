// Two pairs of tiles, so that one barrier for each step is enough.
// A block has TILE x TILE threads.
const int TILE = 16;

__global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float a_tile[2][TILE][TILE], b_tile[2][TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    int now = 0;
    for (int first = 0; first < k; first += TILE, now = 1 - now) {
        a_tile[now][y][x] = row < m && first + x < k ? a[row * k + first + x] : 0;
        b_tile[now][y][x] = first + y < k && column < n ? b[(first + y) * n + column] : 0;
        __syncthreads();
        for (int j = 0; j < TILE; j++) sum += a_tile[now][y][j] * b_tile[now][j][x];
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
