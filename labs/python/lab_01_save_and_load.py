"""Saving a model on one device and loading it on another. Chapter 11 is about it.

Two things are different from many programs: `map_location` says where the tensors go, without which a file that was
saved on a GPU fails to load on a laptop; and all parameters are asked where they are, not only the first.
"""

import tempfile
from pathlib import Path

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def network():
    return nn.Sequential(nn.Linear(10, 100), nn.ReLU(), nn.Linear(100, 1), nn.Tanh())


torch.manual_seed(42)
model = network().to(device)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.pt"
    # The state dict has the tensors by their names, and no code.
    torch.save(model.state_dict(), path)

    loaded = network()
    # weights_only=True, which is the default since PyTorch 2.6, refuses files that would run code.
    loaded.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    loaded.to(device)

same = all(
    torch.equal(one, other)
    for one, other in zip(model.parameters(), loaded.parameters())
)
places = {parameter.device.type for parameter in loaded.parameters()}
print(f"The same numbers: {same}, on {', '.join(places)}")
