"""A device for every machine, and tensors on it."""

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(f"device: {device}")

# ---- Prelude: `model` is given.
model = torch.nn.Linear(5, 2)
# ---- End of the prelude.

a = torch.randn(2, 3)
print(f"a is on {a.device}")
b = a.to(device)
print(f"b is on {b.device}, and is a: {b is a}")

x = torch.randn(5, 5).to(device)
model = model.to(device)
print(model(x).shape, next(model.parameters()).device)
