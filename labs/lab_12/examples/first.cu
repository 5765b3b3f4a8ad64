// Adds two vectors. Eight threads run `add` at the same time, each with its own `i`.
#include <cstdio>

__global__ void add(const float *a, const float *b, float *out) {
    int i = threadIdx.x; // the number of this thread: 0 to 7
    out[i] = 0;          // instead of 0: the sum of a[i] and b[i]
}

int main() {
    float *a, *b, *out;
    cudaMallocManaged(&a, 8 * sizeof(float));
    cudaMallocManaged(&b, 8 * sizeof(float));
    cudaMallocManaged(&out, 8 * sizeof(float));
    for (int i = 0; i < 8; i++) {
        a[i] = i;
        b[i] = 10 * i;
    }
    add<<<1, 8>>>(a, b, out); // 1 block of 8 threads
    cudaDeviceSynchronize();
    for (int i = 0; i < 8; i++) {
        printf("%g + %g = %g\n", a[i], b[i], out[i]);
    }
    return 0;
}
