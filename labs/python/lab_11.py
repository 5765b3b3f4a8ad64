"""Lab 11 in PyTorch: checkpoints. What was saved on one device goes on on another."""

import os
import tempfile
import time

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

from lab_01 import Actor

seed = 42
epochs = 4
half = epochs // 2
other_seed = 7

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_gpu = device.type == "cuda"


def main():
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        save_and_load()
        on_another_machine()
        inside()
        three_orders()
        what_step_costs()
        to_the_cpu_first()
        resume()
        os.chdir(here)


def save_and_load():
    torch.manual_seed(seed)
    # ANCHOR: save
    net = Actor(10, -2.0, 2.0, [100, 50, 25]).to(device)
    torch.save(net.state_dict(), "model.pt")
    # ANCHOR_END: save

    # ANCHOR: load
    state = torch.load("model.pt")  # to where it was saved from

    load_net = Actor(10, -2.0, 2.0, [100, 50, 25])
    load_net.load_state_dict(state)
    after_loading = next(load_net.parameters()).is_cuda
    load_net.to(device)
    after_moving = next(load_net.parameters()).is_cuda
    # ANCHOR_END: load
    saved, from_file = next(net.parameters()).is_cuda, next(iter(state.values())).is_cuda
    for is_cuda in [saved, from_file, after_loading, after_moving]:
        print(f"is_cuda = {str(is_cuda).lower()}")

    # ANCHOR: there_and_back
    on_cpu = torch.load("model.pt", map_location="cpu")
    torch.save(on_cpu, "on-cpu.pt")
    back = torch.load("on-cpu.pt", map_location=device)
    # ANCHOR_END: there_and_back
    if torch.cuda.device_count() > 1:
        # ANCHOR: other_gpu (needs a GPU)
        moved = torch.load("model.pt", map_location="cuda:1")
        # ANCHOR_END: other_gpu
        print(next(iter(moved.values())).device)
    for loaded in [on_cpu, back]:
        same = all(torch.equal(net.state_dict()[name].cpu(), loaded[name].cpu()) for name in loaded)
        print(f"same_numbers = {'yes' if same else 'no'}")


def on_another_machine():
    torch.save(torch.ones(2, 2), "second.pt")
    if torch.cuda.device_count() > 1:
        # ANCHOR: second (needs a GPU)
        x = torch.ones(2, 2, device="cuda:1")
        torch.save(x, "second.pt")
        # ANCHOR_END: second
    places = [str(loaded_on(map_location)) for map_location in [None, "cpu"]]
    print(f"{places} (measured)")


# ANCHOR: loaded_on
def loaded_on(map_location):
    return torch.load("second.pt", map_location=map_location).device
# ANCHOR_END: loaded_on


def inside():
    # ANCHOR: row
    table = torch.randn(100, 100)
    row = table[0]
    torch.save(row, "row.pt")
    torch.save(row.clone(), "copy.pt")
    # ANCHOR_END: row
    sizes = os.path.getsize("row.pt"), os.path.getsize("copy.pt")
    print(f"{sizes} bytes (measured)")

    net = Actor(10, -2.0, 2.0, [100, 50, 25])
    torch.save(net, "whole-model.pt")
    # ANCHOR: whole
    try:
        whole = torch.load("whole-model.pt")
    except Exception as error:
        print(type(error).__name__)
    # ANCHOR_END: whole

    fresh = Actor(10, -2.0, 2.0, [100, 50, 25])
    random = fresh.out.weight.detach().clone()
    # ANCHOR: strict
    state = net.state_dict()
    state["output.weight"] = state.pop("out.weight")

    try:
        fresh.load_state_dict(state)
    except RuntimeError as error:
        print(error)
    keys = fresh.load_state_dict(state, strict=False)
    # ANCHOR_END: strict
    print(f"keys = {keys.missing_keys[0]}, keys = {keys.unexpected_keys[0]}")
    print(f"stays = {'yes' if torch.equal(fresh.out.weight, random) else 'no'}")


# ANCHOR: network
def network():
    return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))


def adam(net):
    return optim.Adam(net.parameters(), lr=1e-2)
# ANCHOR_END: network


def train_step(net, optimizer):
    loss = net(torch.ones(4, 10, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


# ANCHOR: orders
def load(net, optimizer):
    """Loads both files: to the CPU, and from there to where it is needed."""
    net.load_state_dict(torch.load("model.pt", map_location="cpu"))
    optimizer.load_state_dict(torch.load("model.pt.optim", map_location="cpu"))


def create_load_move():
    net = network()
    optimizer = adam(net)
    load(net, optimizer)
    net.to(device)
    return net, optimizer


def create_move_load():
    net = network()
    optimizer = adam(net)
    net.to(device)
    load(net, optimizer)
    return net, optimizer


def move_create_load():
    net = network().to(device)
    optimizer = adam(net)
    load(net, optimizer)
    return net, optimizer
# ANCHOR_END: orders


def three_orders():
    torch.manual_seed(seed)
    # ANCHOR: optim_file
    net = network().to(device)
    optimizer = adam(net)
    train_step(net, optimizer)
    torch.save(net.state_dict(), "model.pt")
    torch.save(optimizer.state_dict(), "model.pt.optim")
    # ANCHOR_END: optim_file
    for order in [create_load_move, create_move_load, move_create_load]:
        net, optimizer = order()
        state = optimizer.state[net[0].weight]
        places = [str(value.device) for value in state.values()]
        try:
            train_step(net, optimizer)
            print(f"next_step = runs, with {', '.join(places)}")
        except RuntimeError as error:
            print(f"{error} (measured)")

    net, optimizer = create_load_move()

    # ANCHOR: cure
    def optimizer_to(optimizer, device):
        """PyTorch has no such function."""
        for state in optimizer.state.values():
            for name, value in state.items():
                if torch.is_tensor(value):
                    state[name] = value.to(device)

    optimizer_to(optimizer, device)
    train_step(net, optimizer)
    # ANCHOR_END: cure


# ANCHOR: five_steps
def five_steps(optimizer):
    start = time.perf_counter()
    for _ in range(5):
        optimizer.step()
    if on_gpu:
        torch.cuda.synchronize()
    return time.perf_counter() - start
# ANCHOR_END: five_steps


def what_step_costs():
    net, optimizer = create_move_load()
    # ANCHOR: loaded_there
    state = torch.load("model.pt.optim", map_location=device)  # step as well
    optimizer.load_state_dict(state)
    # ANCHOR_END: loaded_there
    train_step(net, optimizer)
    print(f"{1e3 * five_steps(optimizer):.3f} ms (measured)")

    net, optimizer = create_load_move()
    # ANCHOR: all_but_step
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)  # all but step go to their parameters
    # ANCHOR_END: all_but_step
    train_step(net, optimizer)
    print(f"{1e3 * five_steps(optimizer):.3f} ms (measured)")


# ANCHOR: peak (needs a GPU)
def peak_of_loading(map_location):
    net = large().to(device)
    optimizer = optim.Adam(net.parameters())

    torch.cuda.reset_peak_memory_stats()
    checkpoint = torch.load("large.pt", map_location=map_location)
    net.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return torch.cuda.max_memory_allocated()
# ANCHOR_END: peak


def large():
    return nn.Sequential(nn.Linear(2048, 1024), nn.ReLU(), nn.Linear(1024, 2048))


def to_the_cpu_first():
    if on_gpu:
        net = large().to(device)
        optimizer = optim.Adam(net.parameters())
        net(torch.ones(1, 2048, device=device)).sum().backward()
        optimizer.step()
        state = {"model": net.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, "large.pt")
        del net, optimizer, state
        for map_location in [device, "cpu"]:
            print(f"{peak_of_loading(map_location)} bytes (measured)")

    # ANCHOR: rng
    torch.save(torch.get_rng_state(), "rng.pt")
    loaded = torch.load("rng.pt", map_location=device)
    try:
        torch.set_rng_state(loaded)
    except TypeError as error:
        print(error)
    # ANCHOR_END: rng


class Training:
    """All that a training run is made of."""

    def __init__(self, seed, dropout):
        of_data = torch.Generator().manual_seed(1)
        x = torch.randn(64, 10, generator=of_data)
        y = x.sum(1, keepdim=True)
        torch.manual_seed(seed)
        self.loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
        self.net = nn.Sequential(
            nn.Linear(10, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, 1)
        )
        self.net.to(device)
        self.optimizer = optim.Adam(self.net.parameters(), lr=0.02)
        self.scheduler = optim.lr_scheduler.StepLR(self.optimizer, 1, 0.8)
        self.epoch = 0

    # ANCHOR: epochs
    def train(self, epochs):
        """Trains until so many epochs are done. Returns the mean loss of each."""
        loss_fn = nn.MSELoss()
        losses = []
        while self.epoch < epochs:
            sum_of_losses = 0.0
            for x, y in self.loader:
                x, y = x.to(device), y.to(device)
                loss = loss_fn(self.net(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                sum_of_losses += loss.item()
            self.scheduler.step()
            self.epoch += 1
            losses.append(sum_of_losses / len(self.loader))
        return losses
    # ANCHOR_END: epochs

    # ANCHOR: checkpoint
    def checkpoint(self):
        """All that it takes to go on."""
        checkpoint = {
            "epoch": self.epoch,
            "model": self.net.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "rng_state": torch.get_rng_state(),
        }
        if on_gpu:
            checkpoint["cuda_rng_state"] = torch.cuda.get_rng_state()
        return checkpoint

    def resume(self, checkpoint):
        """Goes on from there. What is on the CPU goes to where it is needed."""
        self.net.load_state_dict(checkpoint["model"])
        if "optimizer" in checkpoint:
            self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.scheduler.load_state_dict(checkpoint["scheduler"])
        self.epoch = checkpoint["epoch"]
        if "rng_state" in checkpoint:
            torch.set_rng_state(checkpoint["rng_state"])
        if on_gpu and "cuda_rng_state" in checkpoint:
            torch.cuda.set_rng_state(checkpoint["cuda_rng_state"])
    # ANCHOR_END: checkpoint


# ANCHOR: rest
def rest(checkpoint, dropout):
    """Resumes a training run. Returns the losses of the epochs that are left."""
    training = Training(other_seed, dropout)
    training.resume(checkpoint)
    return training.train(epochs)
# ANCHOR_END: rest


def resume():
    # ANCHOR: interrupted
    training = Training(seed, dropout=0.0)
    training.train(half)
    torch.save(training.checkpoint(), "training.pt")
    straight = training.train(epochs)  # as if nothing had happened
    # ANCHOR_END: interrupted

    # ANCHOR: resumed
    loaded = torch.load("training.pt", map_location="cpu")
    resumed = rest(loaded, dropout=0.0)

    # Once more, with what was loaded for the first.
    resumed_twice = rest(loaded, dropout=0.0)
    # ANCHOR_END: resumed

    elsewhere = rest(torch.load("training.pt", map_location="cpu"), dropout=0.0)
    rows = [straight, resumed, elsewhere]
    for part in ["optimizer", "rng_state"]:
        less = torch.load("training.pt", map_location="cpu")
        del less[part]
        rows.append(rest(less, dropout=0.0))
    rows.append(resumed_twice)

    training = Training(seed, dropout=0.2)
    training.train(half)
    torch.save(training.checkpoint(), "dropout.pt")
    with_dropout = training.train(epochs)
    rows += [with_dropout, rest(torch.load("dropout.pt", map_location="cpu"), dropout=0.2)]
    for row in rows:
        wanted = with_dropout if row in rows[-2:] else straight
        print(f"last_loss = {row[-1]:.4f}, same_bits = {'yes' if row == wanted else 'no'}")


if __name__ == "__main__":
    main()
