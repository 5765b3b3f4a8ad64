// A sum by shuffles, a vote, and lanes that wait for each other in two branches.
__global__ void sums(float *out, const float *in) {
    unsigned lane = threadIdx.x % 32;
    float x = in[threadIdx.x];
    for (int by = 16; by > 0; by /= 2)
        x += __shfl_down_sync(0xffffffff, x, by);
    unsigned large = __ballot_sync(0xffffffff, x > 400);
    if (lane < 4) {
        x = 1;
        __syncwarp();
    } else {
        x = 2;
        __syncwarp();
    }
    if (lane == 0) {
        atomicAdd(out, x);
        *(int *)(out + 1) = __popc(large);
    }
}

int main() {
    float h[64], *in, *out;
    for (int i = 0; i < 64; i++) h[i] = i;
    cudaMalloc(&in, sizeof(h));
    cudaMalloc(&out, 2 * sizeof(float));
    cudaMemset(out, 0, 2 * sizeof(float));
    cudaMemcpy(in, h, sizeof(h), cudaMemcpyHostToDevice);
    sums<<<1, 64>>>(out, in);
    cudaDeviceSynchronize();
    cudaFree(in);
    cudaFree(out);
}
