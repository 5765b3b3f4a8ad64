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


def training_step(sizes, batch, loss_fn, y):
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(batch, sizes[0])

    def step():
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def convolutions():
    layers = [(nn.Conv2d(channels, filters, 3, padding=1),
               torch.randn(64, channels, size, size, requires_grad=channels != 3),
               torch.randn(64, filters, size, size)) for channels, filters, size in [(3, 32, 32), (32, 64, 16)]]

    def step():
        for layer, x, grad in layers:
            layer(x).backward(grad)
            layer.zero_grad()
            x.grad = None

    return step


a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
long_a, long_b = torch.randn(1 << 24), torch.randn(1 << 24)
print(json.dumps({
    "tiny_mlp_step": median(training_step([16, 64, 1], 64, nn.MSELoss(), torch.randn(64, 1)), 1000),
    "mnist_mlp_step": median(
        training_step([784, 512, 512, 10], 128, nn.CrossEntropyLoss(), torch.randint(0, 10, (128,))), 60),
    "matmul_1024": median(lambda: a @ b, 30),
    "add_16m": median(lambda: long_a + long_b, 15),
    "convolutions": median(convolutions(), 60),
}))
