"""Lab 13 in PyTorch: pitfalls. Each part is the program that has one."""

import io
import time

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

seed = 42
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def main():
    nothing_is_moved()
    if device.type == "cuda":
        devices_are_mixed()
    graphs_are_kept()
    slower_than_the_cpu()
    waits_for_the_loader()
    in_a_worker()
    if device.type == "cuda":
        a_new_card()
    if torch.cuda.device_count() > 1:
        lost_between_gpus()
    one_full_gpu()


# ANCHOR: network
def network():
    """A network for pictures of 32 × 32 pixels, and what trains it."""
    model = nn.Sequential(nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 10))
    return model, optim.SGD(model.parameters(), lr=0.1)


def train_step(model, optimizer, x, y):
    """Takes one training step. Returns the loss, on the device."""
    loss = nn.CrossEntropyLoss()(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()
# ANCHOR_END: network


def pictures(n):
    return torch.rand(n, 1024), torch.arange(n) % 10


def nothing_is_moved():
    torch.manual_seed(seed)
    # ANCHOR: unmoved
    model, optimizer = network()
    x, y = pictures(512)
    losses = []
    for _ in range(5):
        losses.append(train_step(model, optimizer, x, y).item())
    # and in another window: nvidia-smi
    # ANCHOR_END: unmoved
    print(f"first_loss = {losses[0]:.4f}")
    print(f"last_loss = {losses[-1]:.4f}")
    # ANCHOR: moved
    model.to(device)  # once, before the loop
    x, y = x.to(device), y.to(device)  # every batch
    # ANCHOR_END: moved
    print(f"is_cuda = {str(next(model.parameters()).is_cuda).lower()} (measured)")


def devices_are_mixed():
    try:
        # ANCHOR: mixed (needs a GPU)
        model, optimizer = network()
        model.to(device)
        x, y = pictures(512)
        train_step(model, optimizer, x, y)  # fails
        # ANCHOR_END: mixed
    except RuntimeError as error:
        print(f"{error} (measured)")
    try:
        # ANCHOR: half_moved (needs a GPU)
        x = x.to(device)
        train_step(model, optimizer, x, y)  # fails as well
        # ANCHOR_END: half_moved
    except RuntimeError as error:
        print(f"{error} (measured)")


# ANCHOR: kept
def evaluate(model, x):
    """Adds up the losses of all batches."""
    total = torch.zeros((), device=x.device)
    curve = []
    for _ in range(60):
        loss = model(x).square().mean()
        total = total + loss
        curve.append(torch.cuda.memory_allocated())
    return curve, total.item()
# ANCHOR_END: kept


def graphs_are_kept():
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(16, 1024), nn.ReLU(), nn.Linear(1024, 10)).to(device)
    x = torch.randn(256, 16, device=device)
    # ANCHOR: no_graphs
    with torch.no_grad():
        curve, total = evaluate(model, x)
    # ANCHOR_END: no_graphs
    print(f"batches_after = {len(curve)}")


# ANCHOR: tiny
def step_time(device, rows):
    """How long a training step of a tiny network takes."""
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
    optimizer = optim.SGD(model.parameters())
    x = torch.randn(rows, 16, device=device)

    def step():
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return time_of_a_step(device, step)
# ANCHOR_END: tiny


def wait(device):
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


def time_of_a_step(device, step):
    step()  # the first takes memory
    wait(device)
    start = time.perf_counter()
    step()
    wait(device)
    return time.perf_counter() - start


def slower_than_the_cpu():
    for rows in [16, 64, 256]:
        times = step_time("cpu", rows), step_time(device, rows)
        print(f"{rows} rows: {times} (measured)")


# ANCHOR: pictures
class Pictures(Dataset):
    """Pictures as bytes. Each takes the CPU some time: it becomes floats of mean 0
    and standard deviation 1."""

    def __init__(self, pixels):
        self.pixels = pixels

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, index):
        picture = self.pixels[index].float()
        centred = picture - picture.mean()
        return centred / centred.square().mean().sqrt(), index % 10
# ANCHOR_END: pictures


# ANCHOR: epoch
def epoch(num_workers, pin_memory):
    """Trains for an epoch, with so many workers."""
    pixels = (torch.rand(256, 1024) * 255.0).to(torch.uint8)
    loader = DataLoader(
        Pictures(pixels), batch_size=32, num_workers=num_workers, pin_memory=pin_memory
    )
    model, optimizer = network()
    model.to(device)

    start = time.perf_counter()
    for x, y in loader:
        x = x.to(device, non_blocking=pin_memory)
        y = y.to(device, non_blocking=pin_memory)
        train_step(model, optimizer, x, y)
    wait(device)
    trained = time.perf_counter() - start

    start = time.perf_counter()
    for batch in loader:  # loading alone
        pass
    return trained, time.perf_counter() - start
# ANCHOR_END: epoch


def waits_for_the_loader():
    print(f"{epoch(0, False)} (measured)")


# ANCHOR: on_the_gpu
class OnTheGpu(Dataset):
    """Samples that the data set itself moves."""

    def __init__(self, device):
        self.device = device

    def __len__(self):
        return 32

    def __getitem__(self, index):
        return torch.full((4,), float(index)).to(self.device)
# ANCHOR_END: on_the_gpu


def in_a_worker():
    loader = DataLoader(OnTheGpu(torch.device("cpu")), batch_size=8, num_workers=2)
    print(f"batches_alone = {len(list(loader))}")


def a_new_card():
    # ANCHOR: first_kernel (needs a GPU)
    is_available = torch.cuda.is_available()
    arch_list = torch.cuda.get_arch_list()
    x = torch.ones(1000)
    copy = x.to("cuda")
    kernel = copy + 1  # may have no code for the card
    # ANCHOR_END: first_kernel
    print(f"{is_available}, {arch_list}, {kernel[0]} (measured)")


NUMBERS = 1 << 16


def lost_between_gpus():
    # ANCHOR: symptom (needs a GPU)
    first = torch.ones(NUMBERS, device="cuda:0")
    second = first.to("cuda:1")
    sums = [first.sum().item(), second.sum().item()]
    # ANCHOR_END: symptom
    print(f"{sums}, {routes()} (measured)")


# ANCHOR: routes (needs a GPU)
def wrong(x, there):
    """How many numbers are wrong that went from one GPU to the other."""
    return (x != there.cpu()).sum().item()


def routes():
    """The same for the way straight, for one that waits, and through the host."""
    x = torch.ones(NUMBERS)
    first = x.to("cuda:0")
    straight = wrong(x, first.to("cuda:1"))

    waited = first.to("cuda:1")
    torch.cuda.synchronize()
    waited = wrong(x, waited)

    by_host = wrong(x, first.cpu().to("cuda:1"))
    return [straight, waited, by_host]
# ANCHOR_END: routes


# ANCHOR: reduced (needs a GPU)
def mean_of_sum(rank):
    """The mean that each of two ranks holds after ones and twos are added up."""
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    x = torch.full((NUMBERS,), rank + 1.0, device=f"cuda:{rank}")
    dist.all_reduce(x)
    return x.mean().item()
# ANCHOR_END: reduced


# ANCHOR: load
def resumed(rank, file, map_location):
    """What a rank does to go on from a checkpoint: its model is on the GPU of its
    own number."""
    if torch.cuda.is_available():
        torch.cuda.set_device(rank)
    model = nn.Linear(2048, 2048)
    model.to(device)
    checkpoint = torch.load(file, map_location=map_location)
    model.load_state_dict(checkpoint)
    return model, checkpoint
# ANCHOR_END: load


def one_full_gpu():
    file = io.BytesIO()
    torch.save(nn.Linear(2048, 2048).to(device).state_dict(), file)
    file.seek(0)
    _, checkpoint = resumed(0, file, "cpu")
    print(f"{checkpoint['weight'].device} (measured)")


if __name__ == "__main__":
    main()
