// Adds two vectors, one element a thread.
#include <cstdio>
#include <vector>

__global__ void add(const float *a, const float *b, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = a[i] + b[i];
    }
}

int main() {
    const int n = 1000;
    std::vector<float> a(n), b(n), out(n);
    for (int i = 0; i < n; i++) {
        a[i] = i;
        b[i] = 2 * i;
    }

    // Memory of the device, and copies of the vectors in it.
    float *device_a, *device_b, *device_out;
    cudaMalloc(&device_a, n * sizeof(float));
    cudaMalloc(&device_b, n * sizeof(float));
    cudaMalloc(&device_out, n * sizeof(float));
    cudaMemcpy(device_a, a.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(device_b, b.data(), n * sizeof(float), cudaMemcpyHostToDevice);

    // As many blocks as it takes to have a thread for each element.
    const int threads = 256;
    const int blocks = (n + threads - 1) / threads;
    add<<<blocks, threads>>>(device_a, device_b, device_out, n);
    cudaError_t error = cudaDeviceSynchronize();
    printf("%d blocks of %d threads: %s\n", blocks, threads, cudaGetErrorString(error));

    cudaMemcpy(out.data(), device_out, n * sizeof(float), cudaMemcpyDeviceToHost);
    printf("out[0] = %g, out[1] = %g, out[999] = %g\n", out[0], out[1], out[999]);

    cudaFree(device_a);
    cudaFree(device_b);
    cudaFree(device_out);
    return 0;
}
