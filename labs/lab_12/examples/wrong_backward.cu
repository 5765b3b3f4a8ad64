// Squared ReLU with a wrong backward pass: the slope of x² is 2x, not x. A network trains with it all the same, only
// more slowly, so no loss would tell. `gradcheck` does:
//
//     cargo run --bin lab-12 -- train labs/lab_12/examples/wrong_backward.cu

__global__ void forward(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float positive = fmaxf(x[i], 0.0f);
        y[i] = positive * positive;
    }
}

__global__ void backward(const float *x, const float *grad_y, float *grad_x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        grad_x[i] = grad_y[i] * fmaxf(x[i], 0.0f);
    }
}
