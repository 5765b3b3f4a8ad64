# What PyTorch costs its host: prints the figures of the host profile `pytorch` (gpu/src/host/host_profile.rs) in the form of a
# file for `--host FILE.host`, so that yours can stand in its place.
#
# All on one thread, with tensors of one number, and no GPU: what is timed is hardly any arithmetic. Each time is the
# shortest of many: whatever disturbs makes it longer.
import gc
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate

torch.set_num_threads(1)
torch.manual_seed(0)


def shortest(work, calls=3, rounds=3000):
    for _ in range(20):
        work()
    gc.disable()
    times = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        for _ in range(calls):
            work()
        times.append((time.perf_counter_ns() - start) / calls / 1e3)
    gc.enable()
    return min(times)


def backward_of(forward, parameters):
    def both():
        forward().backward()
        for parameter in parameters:
            parameter.grad = None

    return shortest(both) - shortest(forward)


def step_of(make_optimizer):
    layers = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    optimizer = make_optimizer(layers.parameters())
    nothing_to_do = shortest(optimizer.step)
    for parameter in layers.parameters():
        parameter.grad = torch.zeros_like(parameter)
    return nothing_to_do, shortest(optimizer.step), shortest(optimizer.zero_grad)


one, learned = torch.randn(1), torch.randn(1, requires_grad=True)
dispatch = shortest(lambda: learned + one)


def deep(layers):
    network, x = nn.Sequential(*[nn.Linear(1, 1) for _ in range(layers)]), torch.randn(1, 1)
    return backward_of(lambda: network(x).sum(), list(network.parameters()))


# A Linear has a node and two leaves here, and a product for each of three gradients, or a sum.
node = max(0.0, ((deep(6) - deep(1)) / 5 - 3 * dispatch) / 3)
# The sum of one number has a node and a leaf.
backward = backward_of(lambda: learned.sum(), [learned]) - 2 * node

step, adam, zero_grad = step_of(lambda parameters: torch.optim.Adam(parameters))
sgd_step, sgd, _ = step_of(lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9))


def batch(rows):
    dataset = TensorDataset(torch.randn(4096, 16), torch.randn(4096, 1))
    return shortest(lambda: default_collate([dataset[index] for index in range(rows)]))


row = (batch(64) - batch(32)) / 32


class Numbers(Dataset):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return index


def epoch(batches, num_workers):
    loader = DataLoader(Numbers(batches), batch_size=1, num_workers=num_workers, collate_fn=list)
    return shortest(lambda: [None for _ in loader], calls=1, rounds=20)


worker = (epoch(8, 3) - epoch(8, 1)) / 2
hand_over = (epoch(408, 1) - epoch(8, 1)) / 400

print("like = laptop")
print(f"name = a laptop with PyTorch {torch.__version__}")
for name, value in {
    "dispatch": dispatch,
    "backward": max(0.0, backward),
    "node": node,
    "step": step,
    "adam_parameter": (adam - step) / 4 - dispatch,
    "sgd_parameter": (sgd - sgd_step) / 4 - dispatch,
    "zero_grad": zero_grad,
    "row": row,
    "worker": worker,
    "hand_over": hand_over,
}.items():
    print(f"{name} = {value:.3g} # PyTorch {torch.__version__}, one thread")
