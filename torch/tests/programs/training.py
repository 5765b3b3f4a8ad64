"""Training loops with optimizers, schedules, data sets and samplers."""

import random

import torch
from torch import nn, optim
from torch.optim.lr_scheduler import (
    CosineAnnealingLR, ExponentialLR, LambdaLR, LinearLR, MultiStepLR, ReduceLROnPlateau, StepLR,
)
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, TensorDataset, random_split


class Squares(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.tensor([float(i)]), {"square": i * i, "name": f"n{i}"}


class Stream(IterableDataset):
    def __iter__(self):
        yield from range(7)


torch.manual_seed(3)
for batch, labels in DataLoader(Squares(5), batch_size=2):
    print(batch, labels)
print([batch.tolist() for batch in DataLoader(Stream(), batch_size=3)], len(DataLoader(Squares(5), batch_size=2, drop_last=True)))
print([batch[0].tolist() for batch in DataLoader(TensorDataset(torch.arange(6)), batch_size=4, shuffle=True)])
one, two = random_split(TensorDataset(torch.arange(10)), [0.7, 0.3], generator=torch.Generator().manual_seed(1))
print(one.indices, two.indices, len(ConcatDataset([one, two])), Subset(one, [0, 1])[1])


def train(make, schedule=None):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    x = torch.randn(32, 3)
    y = x.sum(1, keepdim=True)
    optimizer = make(model.parameters())
    scheduler = schedule(optimizer) if schedule else None
    rates = []
    for epoch in range(6):
        for a, b in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(a), b)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        if isinstance(scheduler, ReduceLROnPlateau):
            scheduler.step(loss.item())
        elif scheduler:
            scheduler.step()
        rates.append(round(optimizer.param_groups[0]["lr"], 6))
    print(f"{loss.item():.6f}", rates)
    return optimizer


train(lambda p: optim.SGD(p, lr=0.1))
train(lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3), lambda o: StepLR(o, 2))
train(lambda p: optim.Adam(p, lr=0.01), lambda o: CosineAnnealingLR(o, 5))
train(lambda p: optim.AdamW(p, lr=0.01, weight_decay=0.1), lambda o: ExponentialLR(o, 0.9))
train(lambda p: optim.Adam(p, lr=0.01, weight_decay=0.01), lambda o: LambdaLR(o, lambda epoch: 0.95**epoch))
train(lambda p: optim.SGD(p, lr=0.1), lambda o: LinearLR(o, total_iters=4))
train(lambda p: optim.SGD(p, lr=0.1), lambda o: MultiStepLR(o, [2, 4]))
optimizer = train(lambda p: optim.SGD(p, lr=0.1, momentum=0.5), lambda o: ReduceLROnPlateau(o, patience=0))
print(optimizer)
state = optimizer.state_dict()
print(state["param_groups"], len(state["state"]), state["state"][0]["momentum_buffer"].shape)
model = nn.Linear(2, 1)
groups = optim.Adam([{"params": [model.weight], "lr": 0.5}, {"params": [model.bias]}], lr=0.1)
print([group["lr"] for group in groups.param_groups], len(groups.state))
random.seed(5)
print(random.random(), random.randint(1, 10), random.sample(range(10), 3), random.choice("abc"), random.gauss(0, 1))
