// Picks from each row of scores the one that its label names, as a loss does. The last label is too large.
#include <cstdio>

__global__ void pick(const float *scores, const int *labels, float *out, int rows, int classes) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows) {
        out[i] = scores[i * classes + labels[i]];
    }
}

int main() {
    const int rows = 4, classes = 10;
    float *scores, *out;
    int *labels;
    cudaMallocManaged(&scores, rows * classes * sizeof(float));
    cudaMallocManaged(&labels, rows * sizeof(int));
    cudaMallocManaged(&out, rows * sizeof(float));
    for (int i = 0; i < rows * classes; i++) {
        scores[i] = i;
    }
    int given[rows] = {3, 0, 9, 10};
    cudaMemcpy(labels, given, sizeof given, cudaMemcpyHostToDevice);

    pick<<<1, 32>>>(scores, labels, out, rows, classes);
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(error));
    return 0;
}
