// An activation function of your own, squared ReLU: y = max(x, 0)². Lab 12 trains a network with it:
//
//     cargo run --bin lab-12 -- train my_activation.cu
//
// x, y, and their gradients have n elements each. One thread computes one element.

__global__ void forward(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float positive = fmaxf(x[i], 0.0f);
        y[i] = positive * positive;
    }
}

// The chain rule: the gradient of the loss with respect to x[i] is that with respect to y[i], times the slope of y
// at x[i], which is 2x above 0, and 0 below.
__global__ void backward(const float *x, const float *grad_y, float *grad_x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        grad_x[i] = grad_y[i] * 2.0f * fmaxf(x[i], 0.0f);
    }
}
