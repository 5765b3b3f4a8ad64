"""Lab 12 in PyTorch: a kernel that adds two vectors, compiled while the program runs."""

import torch

# ANCHOR: launch (needs a GPU)
ADD = """
__global__ void add(const float *a, const float *b, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + b[i];
}"""

add = torch.cuda._compile_kernel(ADD, "add")
a = torch.arange(1000.0, device="cuda")
b = a * 10
out = torch.empty_like(a)

n, threads = a.numel(), 256
blocks = (n + threads - 1) // threads
add(grid=(blocks, 1, 1), block=(threads, 1, 1), args=[a, b, out, n])
# ANCHOR_END: launch
print(f"the last sum is {out[-1].item()}")
