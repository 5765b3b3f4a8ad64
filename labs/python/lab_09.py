"""Lab 09 in PyTorch: feeding the GPU. The way of a batch, and why a GPU waits."""

import itertools
import time

import torch
from torch import nn, optim
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate

import lab_05
from lab_05 import BATCH, Training, pictures, watched

seed = 42
batch_size = 64
SAMPLES = 512

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_gpu = device.type == "cuda"


def main():
    torch.manual_seed(seed)
    if on_gpu:
        pageable_and_pinned()
        what_blocks_the_host()
        stale_and_torn()
    else:
        x = torch.ones(64, 1024)
        print(f"x.to({device}) is x itself: {x.to(device) is x}")
    one_epoch()
    more_workers()
    created_or_moved()
    if on_gpu:
        why_is_it_starved()
        busy_is_not_full()


def time_of(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def pageable_and_pinned():
    for bytes_to_copy in [1 << 16, 1 << 20, 1 << 23]:
        # ANCHOR: bandwidth (needs a GPU)
        pageable = torch.zeros(bytes_to_copy // 4)
        pinned = pageable.pin_memory()
        there = pageable.to(device)
        back = torch.empty_like(pinned, pin_memory=True)
        # Not timed: the first call also takes memory.
        pageable.to(device)
        torch.cuda.synchronize()

        to_gpu = time_of(lambda: pageable.to(device)), time_of(lambda: pinned.to(device))
        pageable_to_cpu = time_of(lambda: there.to("cpu"))

        def into_pinned():
            back.copy_(there, non_blocking=True)
            torch.cuda.synchronize()

        pinned_to_cpu = time_of(into_pinned)
        # ANCHOR_END: bandwidth
        rates = [bytes_to_copy / t / 1e9 for t in (*to_gpu, pageable_to_cpu, pinned_to_cpu)]
        print(f"{bytes_to_copy}: {rates} GB/s (measured)")

    # ANCHOR: pinning (needs a GPU)
    batch = torch.zeros(12 << 18)
    batch.to(device)
    copied = time_of(lambda: batch.to(device))
    pinned_first = time_of(lambda: batch.pin_memory())  # takes memory from the driver
    # Takes the same memory from the cache.
    pinned_again = time_of(lambda: batch.pin_memory())
    # ANCHOR_END: pinning
    print(f"{copied:.6f} s, {pinned_first:.6f} s, {pinned_again:.6f} s (measured)")


# ANCHOR: one_copy (needs a GPU)
def one_copy(work, batch, stream, non_blocking):
    """Queues work, then a copy on a stream. Returns how long the call that copies took,
    and how long work and copy took together."""
    start = time.perf_counter()
    with record_function("compute"):
        work @ work

    called = time.perf_counter()
    with record_function("copy"), torch.cuda.stream(stream):
        there = batch.to(device, non_blocking=non_blocking)
    call = time.perf_counter() - called

    with record_function("synchronize"):
        torch.cuda.synchronize()
    return call, time.perf_counter() - start
# ANCHOR_END: one_copy


def what_blocks_the_host():
    # ANCHOR: truth (needs a GPU)
    work = torch.ones(1024, 1024, device=device)
    pageable = torch.ones(512, 512)
    pinned = pageable.pin_memory()
    same = torch.cuda.current_stream()
    side = torch.cuda.Stream()

    rows = []
    for memory, batch in [("pageable", pageable), ("pinned", pinned)]:
        for non_blocking in [False, True]:
            for name, stream in [("same", same), ("other", side)]:
                # Not timed: the first call also takes memory.
                one_copy(work, batch, stream, non_blocking)
                call, whole = one_copy(work, batch, stream, non_blocking)
                rows.append((memory, non_blocking, name, call, whole))
    # ANCHOR_END: truth
    for row in rows:
        print(f"{row} (measured)")


def stale_and_torn():
    # ANCHOR: stale (needs a GPU)
    loss = torch.ones((), device=device)
    first = loss.to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    first_value = first.item()
    del first

    loss.fill_(2.0)
    second = loss.to("cpu", non_blocking=True)
    at_once = second.item()
    torch.cuda.synchronize()
    later = second.item()
    # ANCHOR_END: stale
    print(f"first_loss = {first_value:.1f}, late_loss = {later:.1f}")
    print(f"read at once: {at_once} (measured)")

    # ANCHOR: torn (needs a GPU)
    counts = []
    for wait in [False, True]:
        batch = torch.ones(1 << 20).pin_memory()
        batch.to(device)  # the first copy also takes memory, which waits
        there = batch.to(device, non_blocking=True)
        if wait:
            torch.cuda.current_stream().record_event().synchronize()
        batch.fill_(2.0)
        twos = int(there.sum().item()) - (1 << 20)  # each two adds one more
        counts.append((wait, (1 << 20) - twos, twos))
    # ANCHOR_END: torn
    print(f"{counts} (measured)")


# ANCHOR: pictures
class Pictures(Dataset):
    """Grey pictures of 32 × 32 pixels, as bytes. Each sample takes the CPU some time:
    it becomes a float tensor of mean 0 and standard deviation 1."""

    def __init__(self, n):
        self.pixels = (torch.rand(n, 1024) * 255).to(torch.uint8)
        self.classes = torch.arange(n) % 10

    def __len__(self):
        return len(self.classes)

    def __getitem__(self, index):
        picture = self.pixels[index].float()
        centred = picture - picture.mean()
        deviation = centred.square().mean().sqrt()
        return centred / deviation, self.classes[index]
# ANCHOR_END: pictures


# ANCHOR: prepared
class Prepared(Dataset):
    """Pictures of 128 × 128 pixels, prepared already. The CPU only has to copy the
    64 KiB of each."""

    def __init__(self, pictures):
        self.pictures = pictures
        self.classes = torch.arange(len(pictures)) % 10

    def __len__(self):
        return len(self.classes)

    def __getitem__(self, index):
        return self.pictures[index], self.classes[index]
# ANCHOR_END: prepared


# ANCHOR: train
def train(model, optimizer, batches):
    loss_fn = nn.CrossEntropyLoss()
    for x, y in batches:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
# ANCHOR_END: train


# ANCHOR: moved (needs a GPU)
def moved(loader, non_blocking):
    """The batches of a loader, each moved when the loop asks for it."""
    for batch in loader:
        yield [tensor.to(device, non_blocking=non_blocking) for tensor in batch]


def ahead(loader, copies):
    """The batches of a loader, each sent ahead of time, on a stream for copies."""
    sent = None
    for batch in itertools.chain(loader, [None]):
        following = None
        if batch is not None:
            with torch.cuda.stream(copies):
                tensors = [tensor.to(device, non_blocking=True) for tensor in batch]
                following = tensors, copies.record_event()
        if sent is not None:
            tensors, arrived = sent
            compute = torch.cuda.current_stream()
            compute.wait_event(arrived)
            for tensor in tensors:
                tensor.record_stream(compute)  # its memory belongs to `copies`
            yield tensors
        sent = following
# ANCHOR_END: moved


class Epochs:
    """A network that is trained, and how long its epochs take."""

    def __init__(self, features, hidden):
        self.model = nn.Sequential(
            nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, 10)
        )
        self.model.to(device)
        self.sgd = optim.SGD(self.model.parameters(), lr=0.01)

    def way(self, name, batches):
        """An epoch of the batches that come in this way, timed until the device has done its work."""

        def epoch():
            train(self.model, self.sgd, batches())
            lab_05.wait_for_the_device()

        epoch()  # not timed: the first takes memory
        took = time_of(epoch)
        print(f"{name}: {1e3 * took:.2f} ms, {SAMPLES / took:.0f} samples/s (measured)")


def one_epoch():
    torch.manual_seed(seed)

    # ANCHOR: loader
    def loader(num_workers, pin_memory):
        return DataLoader(
            Pictures(SAMPLES),
            batch_size=batch_size,
            num_workers=num_workers,
            pin_memory=pin_memory,
        )

    training = Epochs(1024, 256)
    # ANCHOR_END: loader
    if not on_gpu:
        none, one = loader(0, False), loader(1, False)
        training.way("no workers", lambda: moved(none, False))
        training.way("a worker", lambda: moved(one, False))
        return

    # ANCHOR: ways (needs a GPU)
    pageable, pinned = loader(0, False), loader(0, True)
    training.way("pageable", lambda: moved(pageable, False))
    training.way("pinned", lambda: moved(pinned, False))
    training.way("+ non_blocking", lambda: moved(pinned, True))

    copies = torch.cuda.Stream()
    training.way("+ prefetcher", lambda: ahead(pinned, copies))

    two, four = loader(2, True), loader(4, True)
    training.way("+ 2 workers", lambda: ahead(two, copies))
    training.way("+ 4 workers", lambda: ahead(four, copies))

    def to_device(samples):
        x, y = default_collate(samples)
        return x.to(device), y.to(device)

    collated = DataLoader(
        Pictures(SAMPLES), batch_size=batch_size, collate_fn=to_device
    )
    training.way("collate to GPU", lambda: collated)

    x, y = next(moved(DataLoader(Pictures(SAMPLES), batch_size=SAMPLES), False))
    training.way("data on the GPU", lambda: zip(x.split(batch_size), y.split(batch_size)))
    # ANCHOR_END: ways
    copies_set_the_pace()


def copies_set_the_pace():
    # ANCHOR: copies (needs a GPU)
    pictures = torch.rand(384, 128 * 128)

    def loader(pin_memory):
        return DataLoader(
            Prepared(pictures), batch_size=64, num_workers=4, pin_memory=pin_memory
        )

    copies = torch.cuda.Stream()
    pageable, pinned = loader(False), loader(True)
    # Not timed: this takes pinned memory for as many batches as may be under way.
    list(pinned)
    training = Epochs(128 * 128, 32)
    training.way("pageable", lambda: moved(pageable, False))
    training.way("pinned", lambda: moved(pinned, False))
    training.way("+ non_blocking", lambda: moved(pinned, True))
    training.way("+ prefetcher", lambda: ahead(pinned, copies))
    # ANCHOR_END: copies


def more_workers():
    times = []
    # ANCHOR: workers
    torch.manual_seed(seed)
    for num_workers in [0, 1, 2]:
        x, y = torch.randn(1024, 16), torch.randn(1024, 1)
        options = dict(batch_size=batch_size, num_workers=num_workers)
        rows = DataLoader(TensorDataset(x, y), **options)
        pictures = DataLoader(Pictures(SAMPLES), **options)

        rows_time = time_of(lambda: list(rows))
        pictures_time = time_of(lambda: list(pictures))
        times.append((num_workers, rows_time, pictures_time))
    # ANCHOR_END: workers
    for num_workers, rows_time, pictures_time in times:
        print(f"{num_workers}: {1e3 * rows_time:.1f} ms, {1e3 * pictures_time:.1f} ms (measured)")


def created_or_moved():
    if not on_gpu:
        x = torch.rand(1024, 1024)
        print(f"host_bytes = {x.nbytes}")
        return
    # ANCHOR: created (needs a GPU)
    # Not timed: the first call also takes memory.
    torch.zeros(1024, 1024, device=device)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()

    start = time.perf_counter()
    host = torch.rand(1024, 1024)
    there = host.to(device)
    moved_time = time.perf_counter() - start
    moved_bytes = host.nbytes, torch.cuda.memory_allocated() - before
    del host, there

    start = time.perf_counter()
    there = torch.rand(1024, 1024, device=device)
    torch.cuda.synchronize()
    made_time = time.perf_counter() - start
    # ANCHOR_END: created
    print(f"device_bytes = {moved_bytes[1]}")
    print(f"moved {1e3 * moved_time:.3f} ms, made {1e3 * made_time:.3f} ms (measured)")

    # ANCHOR: refused (needs a GPU)
    def to_device(samples):
        x, y = default_collate(samples)
        return x.to(device), y.to(device)

    loader = DataLoader(Pictures(8), batch_size=4, num_workers=2, collate_fn=to_device)
    for attempt in [lambda: next(iter(loader)), lambda: there.pin_memory()]:
        try:
            attempt()
        except RuntimeError as error:
            print(str(error).splitlines()[-1])
    # ANCHOR_END: refused


def why_is_it_starved():
    for loop in [well_fed, tiny_batches, pageable, slow_loader, waits]:
        print(f"{loop.__name__}: {loop()} (measured)")


# ANCHOR: fed (needs a GPU)
def well_fed():
    training = Training()
    x, y = pictures(BATCH)
    x, y = x.to(device), y.to(device)
    return watched(lambda: training.step(x, y))
# ANCHOR_END: fed


# ANCHOR: tiny (needs a GPU)
def tiny_batches():
    training = Training()
    x, y = pictures(4)
    x, y = x.to(device), y.to(device)
    return watched(lambda: training.step(x, y))
# ANCHOR_END: tiny


# ANCHOR: from_pageable (needs a GPU)
def pageable():
    training = Training()
    x, y = pictures(BATCH)
    return watched(lambda: training.step(x.to(device), y.to(device)))
# ANCHOR_END: from_pageable


# ANCHOR: slow_loader (needs a GPU)
def slow_loader():
    training = Training()
    loader = DataLoader(
        Pictures(20 * 320), batch_size=320, num_workers=4, pin_memory=True
    )
    batches = itertools.chain.from_iterable(itertools.repeat(loader))

    def step():
        x, y = next(batches)
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        training.step(x, y)

    return watched(step)
# ANCHOR_END: slow_loader


# ANCHOR: waits (needs a GPU)
def waits():
    training = Training()
    x, y = pictures(BATCH)
    x, y = x.to(device), y.to(device)

    def step():
        loss = training.step(x, y)
        check(loss)
        for parameter in training.model.parameters():
            check(parameter)
            check(parameter.grad)

    return watched(step)


def check(x):
    """Left in the loop after somebody had looked for a NaN."""
    if not x.detach().sum().isfinite().item():
        raise ValueError("NaN")
# ANCHOR_END: waits


def busy_is_not_full():
    seen = []
    # ANCHOR: rows (needs a GPU)
    for rows in [1, 8, 80]:
        x = torch.rand(rows, 1 << 16, device=device)
        lab_05.pause()
        start, launches = time.perf_counter(), 0

        def step():
            nonlocal launches
            for _ in range(20):
                x.argmax(1)  # one block of threads per row
                launches += 1
            torch.cuda.synchronize()

        gpu = watched(step)
        per_millisecond = rows * launches / (time.perf_counter() - start) / 1e3
        seen.append((rows, gpu, per_millisecond))
    # ANCHOR_END: rows
    for rows in seen:
        print(f"{rows} (measured)")


if __name__ == "__main__":
    main()
