"""Two ways to bring a batch to the GPU: pinned memory and .to in the loop, or a collate_fn that puts it there at once.

The second spares the loop a line, and little else. The workers of a loader are forks, in which CUDA does not work, so
it allows no workers; and what is on the GPU cannot be pinned. What a pinned batch avoids is a staging buffer, which is
pinned memory of the host, not memory of the GPU.
"""

import torch
from torch.utils.data import DataLoader, TensorDataset, default_collate

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

torch.manual_seed(42)
dataset = TensorDataset(torch.randn(1024, 16), torch.randn(1024, 1))

# Moved in the loop. The old batch goes when the name gets the new one: for an instant both are there.
loader = DataLoader(dataset, batch_size=64, pin_memory=torch.cuda.is_available())
moved = []
for x, y in loader:
    x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
    moved.append(x.sum())


# Put there by the loader. num_workers stays 0.
def to_device(samples):
    return [tensor.to(device) for tensor in default_collate(samples)]


loader = DataLoader(dataset, batch_size=64, collate_fn=to_device)
collated = [x.sum() for x, _ in loader]

same = torch.equal(torch.stack(moved), torch.stack(collated))
print(f"The same batches, on {moved[0].device.type}: {same}")

# What is made on the GPU need not be moved there.
noise = torch.randn(64, 16, device=device)
print(f"Made on {noise.device.type}")
