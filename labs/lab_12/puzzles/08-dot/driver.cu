// The host half of the puzzle: one thread for each element.
#include "host.h"

int main() {
    const std::vector<float> a = values(N, 1), b = values(N, 2);
    std::vector<float> wanted(1);
    for (int i = 0; i < N; i++) wanted[0] += a[i] * b[i];
    float *out = zeros<float>(1);
    dot<<<(N + BLOCK - 1) / BLOCK, BLOCK>>>(to_device(a), to_device(b), out, N);
    return compare(out, wanted);
}
