// The second step of the loop is out of bounds.
__global__ void past(int *data, int n) {
    for (int i = 0; i < n; i += 32) {
        data[i + threadIdx.x] = i;
    }
}

int main() {
    int *data;
    cudaMalloc(&data, 33 * sizeof(int));
    past<<<1, 32>>>(data, 40);
    cudaDeviceSynchronize();
    cudaFree(data);
}
