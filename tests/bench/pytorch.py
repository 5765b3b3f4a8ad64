# The same work as the Rust side of `cargo run --release --bin bench`, in PyTorch on the CPU.
# Prints one JSON object: work -> median seconds.
import json
import statistics
import sys
import time

import torch
from torch import nn

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(0)


def median(work, repetitions):
    for _ in range(repetitions // 10 + 3):
        work()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def training_step(model, x, loss_fn, y, optimizer):
    def step():
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def mlp(*sizes):
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def tiny_mlp_step():
    model = mlp(16, 64, 1)
    optimizer = torch.optim.Adam(model.parameters())
    return training_step(model, torch.randn(64, 16), nn.MSELoss(), torch.randn(64, 1), optimizer)


def mnist_mlp_step():
    model = mlp(784, 512, 512, 10)
    optimizer = torch.optim.Adam(model.parameters())
    classes = torch.randint(0, 10, (128,))
    return training_step(model, torch.randn(128, 784), nn.CrossEntropyLoss(), classes, optimizer)


def cnn_step():
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 8 * 8, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    classes = torch.randint(0, 10, (64,))
    return training_step(model, torch.randn(64, 3, 32, 32), nn.CrossEntropyLoss(), classes, optimizer)


a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
long_a, long_b = torch.randn(1 << 24), torch.randn(1 << 24)
print(json.dumps({
    "tiny_mlp_step": median(tiny_mlp_step(), 1000),
    "mnist_mlp_step": median(mnist_mlp_step(), 60),
    "matmul_1024": median(lambda: a @ b, 30),
    "add_16m": median(lambda: long_a + long_b, 15),
    "cnn_step": median(cnn_step(), 60),
}))
