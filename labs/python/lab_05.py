"""Lab 05 in PyTorch: monitoring. PyTorch asks nvidia-smi's library, for which it wants `pip install nvidia-ml-py`."""

import subprocess
import time

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

seed = 42
BATCH = 1024
MIB = 2**20

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_gpu = device.type == "cuda"


def main():
    torch.manual_seed(seed)
    if on_gpu:
        the_table()
        before_during_after()
        three_numbers()
        who_else()
    the_host()


def wait_for_the_device():
    if on_gpu:
        torch.cuda.synchronize()


def pause():
    """Long enough for the monitor to forget what was before."""
    time.sleep(1)


def the_table():
    # ANCHOR: one_float (needs a GPU)
    one = torch.ones(1, device=device)
    torch.cuda.synchronize()
    pause()

    subprocess.run(["nvidia-smi"])
    # ANCHOR_END: one_float
    del one


class Training:
    # ANCHOR: network
    def __init__(self):
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 10))
        self.model.to(device)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, x, y):
        """One step. The loss stays on the device."""
        loss = nn.CrossEntropyLoss()(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()
    # ANCHOR_END: network


# ANCHOR: watched (needs a GPU)
def watched(step):
    """Trains until training is all that the monitor's counters have seen. Then looks at
    the GPU, and at how busy the CPU was, in percent of one core."""
    step()  # the first takes memory
    step()
    start, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - start < 1:
        step()
    seen = {
        "GPU-Util, %": torch.cuda.utilization(),
        "memory busy, %": torch.cuda.memory_usage(),
        "Pwr, W": torch.cuda.power_draw() / 1000,
        "Memory-Usage, MiB": torch.cuda.device_memory_used() / 2**20,
    }
    elapsed = time.perf_counter() - start
    seen["CPU, %"] = 100 * (time.process_time() - cpu) / elapsed
    return seen
# ANCHOR_END: watched


def pictures(n):
    """Pictures and their classes, on the host."""
    return torch.rand(n, 1024), torch.arange(n) % 10


def note(moment):
    power, memory = torch.cuda.power_draw() / 1000, torch.cuda.device_memory_used() / MIB
    utilization = torch.cuda.utilization()
    print(f"{moment}: {power:.0f} W, {memory:.0f} MiB, {utilization} % (measured)")


def before_during_after():
    torch.cuda.empty_cache()
    pause()
    # ANCHOR: moments (needs a GPU)
    note("before")
    training = Training()
    x, y = pictures(BATCH)
    x, y = x.to(device), y.to(device)
    note("data on the GPU")

    watched(lambda: training.step(x, y))
    note("training")

    torch.cuda.synchronize()
    del training, x, y
    note("just ended")

    pause()
    note("a while later")

    torch.cuda.empty_cache()
    note("empty_cache()")
    # ANCHOR_END: moments


def three_numbers():
    training = Training()
    x, y = pictures(BATCH)
    training.step(x.to(device), y.to(device))
    torch.cuda.synchronize()

    # ANCHOR: ladder (needs a GPU)
    allocated = torch.cuda.memory_allocated()
    reserved = torch.cuda.memory_reserved()
    in_use = torch.cuda.device_memory_used()
    # What others hold, and the CUDA context of this process.
    others = in_use - reserved
    # ANCHOR_END: ladder
    print(f"{allocated} allocated, {reserved} reserved, {in_use} in use, {others} of others (measured)")


def who_else():
    # ANCHOR: processes (needs a GPU)
    print(torch.cuda.list_gpu_processes())
    # ANCHOR_END: processes

    # ANCHOR: too_much (needs a GPU)
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    too_much = free + 64 * 2**20
    try:
        torch.empty(too_much // 4, device=device)
    except torch.OutOfMemoryError as out_of_memory:
        error = out_of_memory
    # ANCHOR_END: too_much
    print(f"{free} of {total} bytes are free: {error} (measured)")


def busy(what, work):
    """How busy the program is with it, in percent of one core."""
    work()
    # ANCHOR: host
    start, before = time.perf_counter(), time.process_time()
    while time.perf_counter() - start < 0.2:
        work()
    elapsed = time.perf_counter() - start
    # Percent of one core, for all threads of this process. Workers are other processes.
    cpu = 100 * (time.process_time() - before) / elapsed
    # ANCHOR_END: host
    print(f"{what}: {cpu:.0f} % (measured)")


class Pictures(Dataset):
    """Pictures as bytes. Each sample costs the CPU something: it is made floats of mean 0."""

    def __init__(self, kept):
        self.pixels = (torch.rand(kept, 1024) * 255).to(torch.uint8)

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        picture = self.pixels[index % len(self.pixels)].float()
        return picture - picture.mean(), index % 10


def the_host():
    small = torch.ones(64)
    busy("small sums", lambda: small + small)
    large = torch.ones(512, 512)
    busy("large products", lambda: large @ large)
    training, (x, y) = Training(), pictures(BATCH)
    x, y = x.to(device), y.to(device)
    busy("a training run", lambda: training.step(x, y))
    busy("sleeps", lambda: time.sleep(0.001))
    if on_gpu:
        there = large.to(device)

        def wait():
            there @ there
            torch.cuda.synchronize()

        busy("waits for a GPU", wait)
    batches = iter(DataLoader(Pictures(64), batch_size=64, num_workers=2))
    busy("waits for workers", lambda: next(batches))
    del batches
    held = torch.ones(64 << 18)  # 64 MiB
    busy("with so much more memory", lambda: time.sleep(0.001))
    del held


if __name__ == "__main__":
    main()
