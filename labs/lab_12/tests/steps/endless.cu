// A flag that nobody sets within this launch.
__global__ void wait(volatile int *flag) {
    while (*flag == 0);
}
__global__ void set(int *flag) { *flag = 1; }

int main() {
    int *flag;
    cudaMalloc(&flag, sizeof(int));
    cudaMemset(flag, 0, sizeof(int));
    set<<<1, 1>>>(flag);
    cudaMemset(flag, 0, sizeof(int));
    wait<<<1, 1>>>(flag);
    cudaDeviceSynchronize();
    cudaFree(flag);
}
