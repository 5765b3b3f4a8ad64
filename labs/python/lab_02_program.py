"""The golden rule: all tensors of one operation live on one device. It is broken, repaired, and its exceptions are tried."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

torch.manual_seed(42)
on_cpu = torch.randn(3, 4)
on_device = torch.randn(3, 4).to(device)
print(f"One is on {on_cpu.device}, the other on {on_device.device}.")

try:
    total = on_cpu + on_device
    print("They are on one device, so they can be added.")
except RuntimeError as error:
    print(f"They cannot be added: {error}")

# The fix: move the one that was left behind, and keep what .to returns.
total = on_cpu.to(device) + on_device
print(f"Once both are there, the sum is on {total.device}.")

# A model and its input: the same rule.
model = nn.Linear(4, 2).to(device)
scores = model(on_cpu.to(device))
print(f"The scores are on {scores.device}.")

# "CPU and GPU never mix" says too much: a plain number has no device, and a tensor of no dimensions counts as one.
print(f"With a number: {(on_device + 2.0).device}")
print(f"With a tensor of no dimensions on the CPU: {(on_device + torch.tensor(2.0)).device}")
print(f"With an index on the CPU: {on_device[torch.tensor([2, 0])].device}")
