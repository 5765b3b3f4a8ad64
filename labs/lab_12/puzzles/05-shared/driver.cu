// The host half of the puzzle: one thread for each element.
#include "host.h"

int main() {
    const std::vector<float> a = values(N, 1);
    std::vector<int> wanted(N);
    for (int i = 0; i < N; i++) {
        for (int j = i / BLOCK * BLOCK; j < N && j / BLOCK == i / BLOCK; j++) wanted[i] += a[j] < a[i];
    }
    int *out = output<int>(N);
    ranks<<<(N + BLOCK - 1) / BLOCK, BLOCK>>>(to_device(a), out, N);
    return compare(out, wanted);
}
