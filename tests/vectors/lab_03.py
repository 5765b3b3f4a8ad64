# What PyTorch 2.11 prints for lab 03, for many seeds and knobs: `python lab_03.py > lab_03.json`.
import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def numbers(seed, target, batch_size, epochs, num_workers):
    torch.manual_seed(seed)
    x = torch.randn(1024, 16)
    y = torch.randn(1024, 1) if target == "noise" else x @ torch.randn(16, 1) / 4
    zero_mse, zero_mae = y.square().mean().item(), y.abs().mean().item()
    loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True, num_workers=num_workers)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
    loss_fn, optimizer = nn.MSELoss(), torch.optim.Adam(model.parameters(), lr=1e-3)
    last, means = [], []
    for _ in range(epochs):
        losses = []
        for batch_x, batch_y in loader:
            loss = loss_fn(model(batch_x), batch_y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        last.append(losses[-1].item())
        means.append(torch.stack(losses).mean().item())
    total = 0
    with torch.no_grad():
        for batch_x, batch_y in loader:
            total += (model(batch_x) - batch_y).abs().sum().item()
    return {"loss": last, "mean_loss": means, "mean_absolute_error": [total / 1024],
            "zero_mean_squared_error": [zero_mse], "zero_mean_absolute_error": [zero_mae]}


def classes(seed, batch_size, epochs, num_workers):
    torch.manual_seed(seed)
    x = torch.randn(1024, 16)
    y = (x @ torch.randn(16, 4)).argmax(1)
    loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True, num_workers=num_workers)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    loss_fn, optimizer = nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=1e-3)
    every, printed = -(-len(loader) // 4), []
    for _ in range(epochs):
        for batch, (batch_x, batch_y) in enumerate(loader):
            loss = loss_fn(model(batch_x), batch_y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if batch % every == 0:
                printed.append(loss.item())
    with torch.no_grad():
        correct = sum((model(batch_x).argmax(1) == batch_y).sum().item() for batch_x, batch_y in loader)
    return {"cross_entropy": printed, "accuracy": [100 * correct / 1024]}


cases = [(seed, "noise", 64, 3, 2) for seed in (42, 0, 1, 2, 3, 7, 123, 2024, 2**32 + 7, -1, 2**64 - 2)]
cases += [(42, "linear", 64, 3, 0), (5, "linear", 64, 10, 0), (42, "noise", 1, 1, 0), (42, "noise", 100, 2, 1),
          (42, "noise", 1024, 2, 3), (42, "noise", 5000, 2, 0), (9, "linear", 7, 1, 0)]
print(json.dumps([
    {"seed": seed, "target": target, "batch_size": batch_size, "epochs": epochs,
     "figures": numbers(seed, target, batch_size, epochs, workers) | classes(seed, batch_size, epochs, workers)}
    for seed, target, batch_size, epochs, workers in cases
], indent=1))
