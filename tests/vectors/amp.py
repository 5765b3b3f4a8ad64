# What PyTorch 2.11 makes of mixed precision on a CPU: `python amp.py > amp.json`.
#
# Losses of training in bfloat16, and the scales of a GradScaler whose losses overflow at some steps.
import json

import torch
from torch import nn

torch.set_num_threads(1)


def mlp(seed, make_optimizer):
    torch.manual_seed(seed)
    x = torch.randn(64, 16)
    y = (x @ torch.randn(16, 4)).argmax(1)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    return train(model, make_optimizer(model.parameters()), x, y)


def cnn(seed):
    torch.manual_seed(seed)
    x = torch.randn(32, 3, 8, 8)
    y = (x.flatten(1) @ torch.randn(192, 4)).argmax(1)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 4)
    )
    return train(model, torch.optim.SGD(model.parameters(), lr=0.05), x, y)


def train(model, optimizer, x, y):
    losses = []
    for _ in range(20):
        with torch.autocast("cpu"):
            loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def scales(bad, steps, **options):
    """The scale after each step, and the parameter: the loss is infinite at the bad steps."""
    p = nn.Parameter(torch.tensor([1.0]))
    optimizer = torch.optim.SGD([p], lr=0.125)
    scaler = torch.amp.GradScaler("cpu", **options)
    seen = []
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        scaler.scale((p * (float("inf") if step in bad else 1.0)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append([scaler.get_scale(), p.item(), scaler.state_dict()["_growth_tracker"]])
    return seen


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-2)


runs = {}
for seed in (0, 42):
    runs[f"mlp_sgd {seed}"] = mlp(seed, sgd)
    runs[f"mlp_adam {seed}"] = mlp(seed, adam)
    runs[f"cnn {seed}"] = cnn(seed)
scaler = [
    {"options": options, "bad": bad, "seen": scales(bad, 12, **options)}
    for options, bad in [
        ({"growth_interval": 3}, [5, 6]),
        ({"growth_interval": 2, "growth_factor": 1.1, "backoff_factor": 0.3}, [4, 9, 10]),
        ({"growth_interval": 1, "init_scale": 2.0**126}, []),
        ({"growth_interval": 2, "init_scale": 0.1, "growth_factor": 3.7}, [1, 2]),
    ]
]
print(json.dumps({"torch": torch.__version__, "losses": runs, "scaler": scaler}))
