"""Trains the networks of labs 03 and 06 with DistributedDataParallel in processes of their own, by gloo, and prints the losses
and the sum of all parameters of every rank, as JSON."""

import json
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def mean_over_ranks(loss, world_size):
    loss = loss.detach().clone()
    dist.all_reduce(loss, op=dist.ReduceOp.SUM)
    return (loss / world_size).item()


def lab_03(rank, world_size):
    torch.manual_seed(0)
    x = torch.randn(1024, 16)
    y = torch.randn(1024, 1)
    dataset = TensorDataset(x, y)
    sampler = DistributedSampler(dataset, world_size, rank)
    loader = DataLoader(dataset, batch_size=64 // world_size, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(mean_over_ranks(loss, world_size))
    return losses, model


def lab_06(rank, world_size):
    torch.manual_seed(0)
    x = torch.rand(1024, 2) * 2.0 - 1.0
    r2 = (x * x).sum(1)
    y = (r2 > 0.3).long() + (r2 > 0.7).long()
    torch.manual_seed(100 + rank)  # other weights on each, until DDP has made them those of rank 0
    model = DistributedDataParallel(
        nn.Sequential(
            nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3)
        )
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = x.chunk(world_size)[rank], y.chunk(world_size)[rank]
    losses = []
    for _ in range(20):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(mean_over_ranks(loss, world_size))
    return losses, model


def run(rank, world_size, port, answers):
    torch.set_num_threads(1)
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", port
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    answer = {}
    for train in (lab_03, lab_06):
        losses, model = train(rank, world_size)
        total = sum(parameter.detach().double().sum().item() for parameter in model.parameters())
        answer[train.__name__] = {"losses": losses, "sum": total}
    answers.put((rank, answer))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    world_size, port = int(sys.argv[1]), sys.argv[2]
    answers = mp.get_context("spawn").Queue()
    context = mp.spawn(run, args=(world_size, port, answers), nprocs=world_size, join=False)
    found = dict(answers.get() for _ in range(world_size))
    while not context.join():
        pass
    print(json.dumps([found[rank] for rank in range(world_size)]))
