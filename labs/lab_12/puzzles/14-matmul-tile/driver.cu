// The host half of the puzzle: a thread for each element of the product.
#include "host.h"

int main() {
    const std::vector<float> a = values(M * K, 1), b = values(K * N, 2);
    std::vector<float> wanted(M * N);
    for (int row = 0; row < M; row++) {
        for (int j = 0; j < K; j++) {
            for (int column = 0; column < N; column++) wanted[row * N + column] += a[row * K + j] * b[j * N + column];
        }
    }
    const dim3 block(TILE, TILE), grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    float *c = output<float>(M * N);
    matmul<<<grid, block>>>(to_device(a), to_device(b), c, M, N, K);
    return compare(c, wanted, N);
}
