# The same work as the Rust side of `cargo run --release --bin bench`, in PyTorch: on the CPU with
# `pytorch.py THREADS`, on a GPU with `pytorch.py THREADS cuda SIDE ELEMENTS [WORK...]`. Prints one JSON object: work -> median seconds.
import contextlib
import json
import statistics
import sys
import time

import torch
from torch import nn

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(0)
device = sys.argv[2] if len(sys.argv) > 2 else "cpu"


def one_by_one(work, repetitions):
    for _ in range(repetitions // 10 + 3):
        work()
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def again_and_again(work):
    def seconds(repetitions):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(repetitions):
            work()
        torch.cuda.synchronize()
        return time.perf_counter() - start

    seconds(3)
    once = seconds(3) / 3
    repetitions = int(min(max(0.1 / once, 3), 10_000))
    return statistics.median(seconds(repetitions) / repetitions for _ in range(5))


def training_step(model, x, loss_fn, y, optimizer, dtype=None):
    def step():
        with torch.autocast(device, dtype=dtype) if dtype else contextlib.nullcontext():
            loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def randn(*sizes):
    return torch.randn(*sizes).to(device)


def classes(count):
    return torch.randint(0, 10, (count,)).to(device)


def mlp(*sizes):
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).to(device)


def tiny_mlp_step():
    model = mlp(16, 64, 1)
    optimizer = torch.optim.Adam(model.parameters())
    return training_step(model, randn(64, 16), nn.MSELoss(), randn(64, 1), optimizer)


def mnist_mlp_step(dtype=None):
    model = mlp(784, 512, 512, 10)
    optimizer = torch.optim.Adam(model.parameters())
    return training_step(model, randn(128, 784), nn.CrossEntropyLoss(), classes(128), optimizer, dtype)


def cnn_step(dtype=None):
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 8 * 8, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training_step(model, randn(64, 3, 32, 32), nn.CrossEntropyLoss(), classes(64), optimizer, dtype)


def product(side, dtype=torch.float32):
    a, b = randn(side, side).to(dtype), randn(side, side).to(dtype)
    return lambda: a @ b


def add(elements):
    a, b = randn(elements), randn(elements)
    return lambda: a + b


def relu(elements):
    x = randn(elements)
    return lambda: torch.relu(x)


def copy(elements):
    source, target = randn(elements), randn(elements)
    return lambda: target.copy_(source)


def launch():
    x = torch.zeros(1, device=device)
    return lambda: x.add_(1.0)


# Whether f32 operands are rounded to TF32. Convolutions round them unless one says otherwise.
def allow_tf32(allow):
    torch.backends.cuda.matmul.allow_tf32 = allow
    torch.backends.cudnn.allow_tf32 = allow


allow_tf32(False)
if device == "cpu":
    times = {
        "tiny_mlp_step": one_by_one(tiny_mlp_step(), 1000),
        "mnist_mlp_step": one_by_one(mnist_mlp_step(), 60),
        "matmul_1024": one_by_one(product(1024), 30),
        "add_16m": one_by_one(add(1 << 24), 15),
        "cnn_step": one_by_one(cnn_step(), 60),
    }
else:
    side, elements, only = int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]
    works = {
        "tiny_mlp_step": tiny_mlp_step,
        "mnist_mlp_step": mnist_mlp_step,
        "cnn_step": cnn_step,
        "matmul": lambda: product(side),
        "add": lambda: add(elements),
        "relu": lambda: relu(elements),
        "copy": lambda: copy(elements),
        "launch": launch,
        "allocation": lambda: lambda: torch.empty(1 << 18, device=device),
    }
    if torch.cuda.get_device_capability()[0] >= 8:
        works |= {
            "mnist_mlp_step_bf16": lambda: mnist_mlp_step(torch.bfloat16),
            "cnn_step_bf16": lambda: cnn_step(torch.bfloat16),
            "matmul_bf16": lambda: product(side, torch.bfloat16),
            "mnist_mlp_step_tf32": mnist_mlp_step,
            "cnn_step_tf32": cnn_step,
            "matmul_tf32": lambda: product(side),
        }
    times = {}
    for name, prepare in works.items():
        if not only or name in only:
            allow_tf32(name.endswith("_tf32"))
            times[name] = again_and_again(prepare())
print(json.dumps(times))
