"""Lab 02 in PyTorch: the golden rule. All tensors of one operation live on one device."""

import time
from contextlib import contextmanager

import torch
from torch import nn, optim

seed = 42
batch_size = 256
steps = 5

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def main():
    print(f"Tensors are made on: {torch.zeros(3).device}")
    print(f"In this run they move to: {device}")
    tensor_and_tensor()
    model_and_data()
    loss_and_target()
    four_placements()
    exceptions()
    what_moves()
    optimizer_before_or_after()
    module_of_your_own()
    two_gpus()


@contextmanager
def attempt(operation):
    """Shows the message of the rule that was broken, if one was."""
    try:
        yield
    except RuntimeError as error:
        print(f"{operation} fails: {error}")


def runs(operation, result):
    print(f"{operation} runs. The result is on {result.device}")


def tensor_and_tensor():
    with attempt("a + b"):
        # ANCHOR: tensors
        torch.manual_seed(seed)
        a = torch.randn(3, 4)
        b = torch.randn(3, 4).to(device)
        sum = a + b
        # ANCHOR_END: tensors
        runs("a + b", sum)
    with attempt("a + b"):
        # ANCHOR: tensors_fixed
        a = a.to(device)
        sum = a + b
        # ANCHOR_END: tensors_fixed
        runs("a + b", sum)


# ANCHOR: network
def network():
    """Scores for ten classes from 784 features."""
    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 10))
# ANCHOR_END: network


def model_and_data():
    with attempt("model(x)"):
        # ANCHOR: model
        model = network()
        model.to(device)
        x = torch.randn(batch_size, 784)
        scores = model(x)
        # ANCHOR_END: model
        runs("model(x)", scores)
    with attempt("model(x)"):
        # ANCHOR: model_fixed
        x = x.to(device)
        scores = model(x)
        # ANCHOR_END: model_fixed
        runs("model(x)", scores)


def loss_and_target():
    with attempt("loss_fn(scores, y)"):
        # ANCHOR: loss
        x = torch.randn(batch_size, 784)
        y = torch.randint(0, 10, (batch_size,))
        model = network()
        model.to(device)
        loss_fn = nn.CrossEntropyLoss()

        scores = model(x.to(device))
        loss = loss_fn(scores, y)
        # ANCHOR_END: loss
        runs("loss_fn(scores, y)", loss)
    with attempt("loss_fn(scores, y)"):
        # ANCHOR: loss_fixed
        y = y.to(device)
        loss = loss_fn(scores, y)
        # ANCHOR_END: loss_fixed
        runs("loss_fn(scores, y)", loss)


def four_placements():
    devices = {torch.device("cpu"), device}
    for model_device in devices:
        for data_device in devices:
            print(f"Model on {model_device}, data on {data_device}:")
            try:
                first_loss, last_loss, step_time = train(model_device, data_device)
            except RuntimeError as error:
                print(error)
                continue
            print(f"{first_loss = :.4f}, {last_loss = :.4f}")
            print(f"one step: {1e3 * step_time:.3f} ms (measured)")


def make_batch():
    """Features, and the class of each sample: the direction, of ten random ones, that it points to most."""
    x = torch.randn(batch_size, 784)
    y = (x @ torch.randn(784, 10)).argmax(1)
    return x, y


# ANCHOR: train
def train(model_device, data_device):
    """Trains a new network on one batch."""
    torch.manual_seed(seed)
    x, y = make_batch()
    x, y = x.to(data_device), y.to(data_device)

    model = network()
    model.to(model_device)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def step():
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    # The first step is not timed: it also takes memory and starts libraries.
    first_loss = step().item()

    synchronize(model_device)
    start = time.perf_counter()
    for _ in range(steps):
        loss = step()
    synchronize(model_device)  # a GPU may still be working when the loop is done
    step_time = (time.perf_counter() - start) / steps

    return first_loss, loss.item(), step_time


def synchronize(device):
    """Waits until the device has done all its work. The CPU already has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
# ANCHOR_END: train


def exceptions():
    # ANCHOR: exceptions
    x = torch.ones(3).to(device)
    number = torch.tensor(2.0)
    vector = torch.tensor([2.0])
    index = torch.tensor([2, 0])

    operations = [
        lambda: x + 2.0,
        lambda: x + number,
        lambda: x + vector,
        lambda: number.to(device) + vector,
        lambda: x.copy_(vector),
        lambda: x[index],
        lambda: x.index_select(0, index),
        lambda: x.gather(0, index),
    ]
    # ANCHOR_END: exceptions
    names = [
        "x + a number",
        "x + number",
        "x + vector",
        "number.to(device) + vector",
        "x.copy_(vector)",
        "x[index]",
        "x.index_select(…, index)",
        "x.gather(…, index)",
    ]
    for name, operation in zip(names, operations):
        with attempt(name):
            runs(name, operation())


def what_moves():
    # ANCHOR: moves
    x = torch.randn(64, 784)
    x.to(device)
    print(f"Not kept: x is on {x.device}")

    x = x.to(device)
    print(f"Kept: x is on {x.device}")

    model = network()
    model.to(device)
    weight = next(model.parameters())
    print(f"The model's first weight is on {weight.device}")
    # ANCHOR_END: moves


def optimizer_before_or_after():
    after = losses("made after the move")
    before = losses("made before")
    for loss_after, loss_before in zip(after, before):
        print(f"{loss_after = :.4f}, {loss_before = :.4f}")


# ANCHOR: losses
def losses(optimizer_is):
    """The losses of the first three steps."""
    torch.manual_seed(seed)
    x, y = make_batch()
    x, y = x.to(device), y.to(device)
    loss_fn = nn.CrossEntropyLoss()

    model = network()
    if optimizer_is == "made before":
        optimizer = optim.Adam(model.parameters(), lr=1e-3)
        model.to(device)
    else:
        model.to(device)
        optimizer = optim.Adam(model.parameters(), lr=1e-3)

    losses = []
    for _ in range(3):
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
# ANCHOR_END: losses


# ANCHOR: center
class Center(nn.Module):
    """Subtracts a mean from its input."""

    def __init__(self, mean):
        super().__init__()
        self.mean = mean

    def forward(self, x):
        return x - self.mean
# ANCHOR_END: center


# ANCHOR: buffer
class CenterWithBuffer(nn.Module):
    """The same, with the mean as a buffer: not learned, but part of the module."""

    def __init__(self, mean):
        super().__init__()
        self.register_buffer("mean", mean)

    def forward(self, x):
        return x - self.mean
# ANCHOR_END: buffer


def module_of_your_own():
    with attempt("center(x)"):
        # ANCHOR: own_module
        x = torch.randn(64, 784).to(device)
        mean = torch.zeros(784)

        center = Center(mean)
        center.to(device)
        centered = center(x)
        # ANCHOR_END: own_module
        runs("center(x)", centered)
    with attempt("center(x)"):
        center = CenterWithBuffer(mean)
        center.to(device)
        runs("center(x)", center(x))


def two_gpus():
    if torch.cuda.device_count() < 2:
        return
    with attempt("a + b"):
        # ANCHOR: two_gpus (needs a GPU)
        a = torch.ones(3).to("cuda:0")
        b = torch.ones(3).to("cuda:1")
        sum = a + b
        # ANCHOR_END: two_gpus
        runs("a + b", sum)
    with attempt("a + b"):
        # ANCHOR: two_gpus_fixed (needs a GPU)
        b = b.to(a.device)
        sum = a + b
        # ANCHOR_END: two_gpus_fixed
        runs("a + b", sum)


if __name__ == "__main__":
    main()
