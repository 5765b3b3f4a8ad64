"""The settings for speed, and those for the same bits every time. They exclude each other.

benchmark=True pays only where the sizes stay the same. deterministic=True alone is not enough for the same bits: seeds,
the workspace of cuBLAS and use_deterministic_algorithms belong to it, too.
"""

import os

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # before CUDA is first used

import torch
from torch import nn


def for_speed():
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic = False
    torch.backends.cudnn.benchmark = True


def for_the_same_bits(seed):
    torch.manual_seed(seed)  # for the CPU and all GPUs
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True)


def gradient(device):
    conv = nn.Conv2d(3, 8, 3, padding=1).to(device)
    conv(torch.randn(8, 3, 32, 32).to(device)).square().mean().backward()
    return conv.weight.grad


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
gradients = []
for _ in range(2):
    for_the_same_bits(42)
    gradients.append(gradient(device))
print(f"The same bits: {torch.equal(*gradients)}")

for_speed()
print(f"Found by trying, on a GPU: {torch.backends.cudnn.benchmark}")
