"""Lab 03 in PyTorch: the training loop. A complete one for numbers, then one for classes."""

import math
import time

import torch
from torch import nn, optim
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.data import DataLoader, TensorDataset

seed = 42
batch_size = 64
epochs = 3
num_workers = 2
pin_memory = True
target = "noise"  # or "linear"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def main():
    torch.manual_seed(seed)
    print(f"Training on device: {device}")

    # ANCHOR: data
    x = torch.randn(1024, 16)
    if target == "noise":
        y = torch.randn(1024, 1)
    else:
        y = x @ torch.randn(16, 1) / 4
    # The error of a model that always answers 0, measured in two ways.
    zero_mse = y.square().mean().item()
    zero_mae = y.abs().mean().item()

    loader = DataLoader(
        TensorDataset(x, y),
        batch_size=batch_size,
        shuffle=True,
        num_workers=num_workers,
        pin_memory=pin_memory,
    )
    # ANCHOR_END: data
    print(f"num_samples = {len(loader.dataset)}, num_batches = {len(loader)}")

    # ANCHOR: model
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
    model.to(device)  # once, before the loop

    loss_fn = nn.MSELoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    # ANCHOR_END: model
    print(model)
    print(f"num_parameters = {sum(p.numel() for p in model.parameters())}")

    # ANCHOR: train
    for epoch in range(1, epochs + 1):
        model.train()
        losses = []
        for x, y in loader:
            x, y = x.to(device), y.to(device)  # every batch

            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

            losses.append(loss.detach())
        last = losses[-1].item()
        print(f"Epoch [{epoch}/{epochs}], Loss: {last:.4f}")

        mean = torch.stack(losses).mean().item()
        print(f"mean_loss = {mean:.3f}")
    # ANCHOR_END: train

    # ANCHOR: evaluate
    model.eval()
    with torch.no_grad():
        error = mean_absolute_error(model, loader)
    # ANCHOR_END: evaluate
    print(f"mean_absolute_error = {error:.4f}")
    print(f"zero_mean_squared_error = {zero_mse:.4f}")
    print(f"zero_mean_absolute_error = {zero_mae:.4f}")

    classify()
    where_everything_lives(model, loader, optimizer)
    one_step_timed()
    when_to_stop_the_clock()


# ANCHOR: mean_absolute_error
def mean_absolute_error(model, loader):
    total, num_samples = 0.0, 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        predictions = model(x)
        total += (predictions - y).abs().sum().item()
        num_samples += x.size(0)
    return total / num_samples
# ANCHOR_END: mean_absolute_error


def classify():
    # ANCHOR: classes
    torch.manual_seed(seed)
    x = torch.randn(1024, 16)
    # The class of a sample says which of four random directions it points in most.
    y = (x @ torch.randn(16, 4)).argmax(1)
    loader = DataLoader(
        TensorDataset(x, y),
        batch_size=batch_size,
        shuffle=True,
        num_workers=num_workers,
        pin_memory=pin_memory,
    )

    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    model.to(device)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    # ANCHOR_END: classes

    every = math.ceil(len(loader) / 4)
    # ANCHOR: train_classes
    size = len(loader.dataset)
    for epoch in range(1, epochs + 1):
        print(f"Epoch {epoch}")
        model.train()
        for batch, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)

            prediction = model(x)
            loss = loss_fn(prediction, y)

            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

            if batch % every == 0:
                current = min((batch + 1) * batch_size, size)
                print(f"loss: {loss.item():.3f}  [{current:>5}/{size:>5}]")
    # ANCHOR_END: train_classes

    model.eval()
    with torch.no_grad():
        correct = sum(
            (model(x.to(device)).argmax(1) == y.to(device)).sum().item()
            for x, y in loader
        )
    print(f"accuracy = {100 * correct / size:.1f} %")
    print(f"chance_loss = {math.log(4):.4f}")


def where_everything_lives(model, loader, optimizer):
    # ANCHOR: places
    all_x, all_y = loader.dataset.tensors
    host_x, host_y = next(iter(loader))
    x, y = host_x.to(device), host_y.to(device)

    hidden = model[1](model[0](x))
    loss = nn.MSELoss()(model[2](hidden), y)

    parameters, gradients = [], []
    exp_avg, exp_avg_sq, steps = [], [], []
    for parameter in model.parameters():
        parameters.append(parameter)
        gradients.append(parameter.grad)
        state = optimizer.state[parameter]
        exp_avg.append(state["exp_avg"])
        exp_avg_sq.append(state["exp_avg_sq"])
        steps.append(state["step"])  # a tensor of one float, on the CPU
    # ANCHOR_END: places
    groups = {
        "data set, x": [all_x],
        "data set, y": [all_y],
        "batch, x": [host_x],
        "batch, y": [host_y],
        "step counts": steps,
        "parameters": parameters,
        "gradients": gradients,
        "exp_avg": exp_avg,
        "exp_avg_sq": exp_avg_sq,
        "hidden layer": [hidden],
        "the loss": [loss],
    }
    sizes = {name: sum(t.nbytes for t in tensors) for name, tensors in groups.items()}
    for name, tensors in groups.items():
        print(f"{name}: bytes = {sizes[name]}, on {tensors[0].device.type}")
    trained = ["parameters", "gradients", "exp_avg", "exp_avg_sq"]
    training_bytes = sum(sizes[name] for name in trained)
    print(f"{training_bytes = }")
    print(f"times_the_model = {training_bytes // sizes['parameters']}")


# ANCHOR: one_step
def train_step(model, optimizer, batch):
    """Takes one training step, with its parts named. Returns how long the host took to
    queue all of it, and how long until it had read the loss."""
    loss_fn = nn.MSELoss()
    device = next(model.parameters()).device
    start = time.perf_counter()

    with record_function("batch to the device"):
        x, y = (tensor.to(device) for tensor in batch)
    with record_function("zero_grad"):
        optimizer.zero_grad()
    with record_function("forward"):
        prediction = model(x)
    with record_function("loss"):
        loss = loss_fn(prediction, y)
    with record_function("backward"):
        loss.backward()
    with record_function("optimizer step"):
        optimizer.step()
    queued = time.perf_counter() - start

    with record_function("reading the loss"):
        loss.item()
    return queued, time.perf_counter() - start
# ANCHOR_END: one_step


def step_on(device, batch_size):
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    batch = [torch.randn(batch_size, 16), torch.randn(batch_size, 1)]

    # ANCHOR: profile
    # Not recorded: the first step takes memory.
    train_step(model, optimizer, batch)
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as profiler:
        queued, done = train_step(model, optimizer, batch)
    launches = sum(event.name == "cudaLaunchKernel" for event in profiler.events())
    # ANCHOR_END: profile
    # profiler.export_chrome_trace("timeline.json") writes the timeline down.
    return queued, done, launches


def one_step_timed():
    if device.type == "cuda":
        queued, done, launches = step_on(device, batch_size)
        print(f"{launches} launches, queued in {queued * 1e3:.3f} ms (measured)")
        print(f"a step on the GPU: {done * 1e3:.3f} ms (measured)")
    # ANCHOR: both
    cpu = torch.device("cpu")
    _, cpu_done, _ = step_on(cpu, batch_size)
    _, cpu_large_done, _ = step_on(cpu, 16 * batch_size)
    # ANCHOR_END: both
    print(f"a step on the CPU: {cpu_done * 1e3:.3f} ms (measured)")
    print(f"with 16 times as many: {cpu_large_done * 1e3:.3f} ms (measured)")


def when_to_stop_the_clock():
    # ANCHOR: wide
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512))
    model.to(device)
    x = torch.randn(512, 512).to(device)
    # ANCHOR_END: wide

    # ANCHOR: clock
    model(x)  # not timed: the first takes memory and loads code

    wait_for(device)  # no earlier work is left to be timed
    start = time.perf_counter()
    model(x)
    returned = time.perf_counter() - start

    wait_for(device)
    start = time.perf_counter()
    model(x)
    wait_for(device)
    synchronized = time.perf_counter() - start

    start = time.perf_counter()
    model(x)[0, 0].item()
    read = time.perf_counter() - start
    # ANCHOR_END: clock
    print(f"when forward returns: {returned * 1e3:.3f} ms (measured)")
    print(f"after synchronize: {synchronized * 1e3:.3f} ms (measured)")
    print(f"after item has read a number: {read * 1e3:.3f} ms (measured)")


def wait_for(device):
    """Returns when the device has done all it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
