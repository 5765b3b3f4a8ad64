"""Mixed precision, under the names of `torch.cuda.amp`."""

# ---- Prelude: `model`, `loss_fn`, `optimizer` and `dataloader` are given.
import torch
from torch import nn

torch.manual_seed(3)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(device)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
dataloader = [(torch.randn(32, 8).to(device), torch.randint(0, 4, (32,)).to(device)) for _ in range(4)]
# ---- End of the prelude.

from torch.cuda.amp import GradScaler, autocast

scaler = GradScaler()

for input, target in dataloader:
    optimizer.zero_grad()
    with autocast():
        output = model(input)
        loss = loss_fn(output, target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(output.dtype, f"{loss.item():.3f}", scaler.get_scale())
