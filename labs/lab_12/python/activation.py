"""Lab 12 in PyTorch: an activation function of your own, in CUDA C++, under autograd.

It has the kernels of examples/activation.cu. Without a GPU, tensor operations stand in for them.
"""

import pathlib

import torch
from torch import nn, optim
from torch.autograd import gradcheck
from torch.utils.data import DataLoader, TensorDataset

seed = 42
epochs = 3
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


# ANCHOR: load_inline (needs a GPU)
WRAPPERS = """
#include <c10/cuda/CUDAStream.h>

torch::Tensor run_forward(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    auto stream = c10::cuda::getCurrentCUDAStream();
    forward<<<(n + 255) / 256, 256, 0, stream>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}

torch::Tensor run_backward(torch::Tensor x, torch::Tensor grad_y) {
    auto grad_x = torch::empty_like(x);
    int n = x.numel();
    auto stream = c10::cuda::getCurrentCUDAStream();
    backward<<<(n + 255) / 256, 256, 0, stream>>>(
        x.data_ptr<float>(), grad_y.data_ptr<float>(), grad_x.data_ptr<float>(), n);
    return grad_x;
}
"""
DECLARATIONS = """
torch::Tensor run_forward(torch::Tensor x);
torch::Tensor run_backward(torch::Tensor x, torch::Tensor grad_y);
"""


def compile_kernels(source):
    from torch.utils.cpp_extension import load_inline

    # This calls nvcc, which takes a minute the first time.
    return load_inline(
        name="activation",
        cpp_sources=DECLARATIONS,
        cuda_sources=source + WRAPPERS,
        functions=["run_forward", "run_backward"],
        extra_cuda_cflags=["--fmad=false"],
    )
# ANCHOR_END: load_inline


class OnCpu:
    @staticmethod
    def run_forward(x):
        return x.clamp(min=0).square()

    @staticmethod
    def run_backward(x, grad_y):
        return grad_y * 2 * x.clamp(min=0)


if device.type == "cuda":
    file = pathlib.Path(__file__).parent.parent / "examples/activation.cu"
    kernels = compile_kernels(file.read_text())
else:
    kernels = OnCpu


# ANCHOR: operation
class Activation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        ctx.save_for_backward(x)
        return kernels.run_forward(x)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return kernels.run_backward(x, grad_y.contiguous())
# ANCHOR_END: operation


class Layer(nn.Module):
    def forward(self, x):
        return Activation.apply(x)


class Operations(nn.Module):
    def forward(self, x):
        return x.relu().square()


def train(activation):
    torch.manual_seed(seed)
    x = torch.randn(1024, 16)
    y = torch.randn(1024, 1)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(16, 64), activation, nn.Linear(64, 1)).to(device)
    loss_fn = nn.MSELoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(epochs):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    return losses


# ANCHOR: gradcheck
x = torch.tensor([-2.0, -1.25, -0.5, 0.5, 1.25, 2.0], device=device, requires_grad=True)
# Wider than the defaults, which are for doubles.
print(gradcheck(Activation.apply, (x,), eps=1e-2, atol=1e-2, rtol=1e-2))
# ANCHOR_END: gradcheck
for epoch, (mine, theirs) in enumerate(zip(train(Layer()), train(Operations())), start=1):
    print(f"{epoch:>5}  {mine:>12.6f}  {theirs:>19.6f}")
