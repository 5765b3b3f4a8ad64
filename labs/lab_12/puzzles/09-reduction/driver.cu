// The host half of the puzzle: one thread for each element.
#include "host.h"

int main() {
    const std::vector<float> a = values(N, 1);
    const int blocks = (N + BLOCK - 1) / BLOCK;
    std::vector<float> wanted(blocks);
    for (int i = 0; i < N; i++) wanted[i / BLOCK] += a[i];
    float *out = output<float>(blocks);
    block_sums<<<blocks, BLOCK>>>(to_device(a), out, N);
    return compare(out, wanted);
}
