// The host half of the puzzle: one thread for each element.
#include "host.h"

int main() {
    const std::vector<float> a = values(N, 1);
    std::vector<float> wanted(N);
    for (int i = 0; i < N; i++) wanted[i] = a[i] * a[i];
    float *out = output<float>(N);
    square<<<(N + BLOCK - 1) / BLOCK, BLOCK>>>(to_device(a), out, N);
    return compare(out, wanted);
}
