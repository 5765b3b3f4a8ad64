"""A training loop with automatic mixed precision.

Two things are different from the loop that circulates: the batch moves to the device, and the names are torch.amp's;
torch.cuda.amp is deprecated. The weights stay float32. What shrinks are the activations, so memory is saved where they
outweigh the weights.
"""

import torch
from torch import nn, optim
from torch.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(42)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

x = torch.rand(4096, 2) * 2 - 1
radius = x.square().sum(1)
y = (radius > 0.3).long() + (radius > 0.7).long()  # in which of three rings it lies
loader = DataLoader(TensorDataset(x, y), batch_size=256, shuffle=True)

model = nn.Sequential(
    nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3)
).to(device)
loss_fn = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=0.01)
scaler = GradScaler(device.type)  # float16 needs one; bfloat16 does not

for epoch in range(20):
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        with autocast(device.type, dtype=torch.float16):
            loss = loss_fn(model(inputs), targets)
        scaler.scale(loss).backward()  # outside of autocast
        scaler.step(optimizer)  # skipped where a gradient is infinite
        scaler.update()

model.eval()
with torch.no_grad():
    accuracy = (model(x.to(device)).argmax(1) == y.to(device)).float().mean().item()
print("It has learned the rings." if accuracy > 0.9 else "It has not learned the rings.")
print(f"The weights are still {model[0].weight.dtype}.")
