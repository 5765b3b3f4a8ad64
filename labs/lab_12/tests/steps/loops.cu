// Loops of each kind; each lane goes round its own number of times.
__global__ void loops(int *out) {
    const int most = 3;
    int i = threadIdx.x;
    int sum = 0;
    for (int k = 0; k < i && k < most; k++) {
        if (k == 1)
            continue;
        sum += k;
    }
    while (true) {
        sum++;
        if (sum > 3) break;
    }
    do {
        sum -= 2;
    } while (sum > 0);
    switch (sum) {
        case 0:
            sum = 10;
            break;
        default:
            sum = 20;
    }
    out[i] = sum;
}

int main() {
    int *out;
    cudaMalloc(&out, 16);
    loops<<<1, 4>>>(out);
    cudaDeviceSynchronize();
    cudaFree(out);
}
