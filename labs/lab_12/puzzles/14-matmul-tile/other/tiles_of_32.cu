// Tiles of 32 x 32, with pointers that move along.
const int TILE = 32;

__global__ void matmul(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int m, int n, int k) {
    __shared__ float a_tile[TILE][TILE + 1];
    __shared__ float b_tile[TILE][TILE + 1];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0.0f;
    const int tiles = (k + TILE - 1) / TILE;
    for (int tile = 0; tile < tiles; tile++) {
        const int a_column = tile * TILE + x, b_row = tile * TILE + y;
        a_tile[y][x] = 0.0f;
        b_tile[y][x] = 0.0f;
        if (row < m && a_column < k) a_tile[y][x] = a[row * k + a_column];
        if (b_row < k && column < n) b_tile[y][x] = b[b_row * n + column];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < TILE; j++) sum = fmaf(a_tile[y][j], b_tile[j][x], sum);
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
