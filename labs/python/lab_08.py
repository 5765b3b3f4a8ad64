"""Lab 08 in PyTorch: asynchrony. A call to a GPU returns before its work is done."""

import os
import subprocess
import sys
import time

import torch
from torch import nn, optim
from torch.nn.functional import mse_loss
from torch.profiler import profile

seed = 42
steps = 4
chunk_count = 4

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_gpu = device.type == "cuda"


def main():
    torch.manual_seed(seed)
    calls_return()
    timing()
    hidden_synchronizations()
    if on_gpu:
        overlapping()
        a_race()
        the_default_stream()
    whodunit()


def wait_for(device):
    """Returns when the device has done all it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def calls_return():
    times = []
    # ANCHOR: calls
    for size in [128, 256, 512, 1024]:
        x = torch.randn(size, size).to(device)
        x @ x  # not timed: the first takes memory
        wait_for(device)

        start = time.perf_counter()
        x @ x
        call = time.perf_counter() - start
        wait_for(device)
        work = time.perf_counter() - start

        times.append((size, call, work))
    # ANCHOR_END: calls
    for size, call, work in times:
        print(f"{size}: {1e3 * call:.3f} ms, done after {1e3 * work:.3f} ms (measured)")

    # ANCHOR: queue
    x = torch.randn(512, 512).to(device)
    y = x @ x @ x  # not timed
    wait_for(device)

    start = time.perf_counter()
    for _ in range(10):
        y = y @ x  # needs the one before
    queued = time.perf_counter() - start
    wait_for(device)
    done = time.perf_counter() - start
    # ANCHOR_END: queue
    print(f"ten products: {1e3 * queued:.3f} ms, done after {1e3 * done:.3f} ms (measured)")


# ANCHOR: five_products
def five_products(x):
    y = x @ x
    for _ in range(1, 5):
        y = y @ x
    return y
# ANCHOR_END: five_products


def timing():
    # ANCHOR: wrong
    x = torch.randn(512, 512).to(device)
    five_products(x)  # not timed
    wait_for(device)

    start = time.perf_counter()
    y = five_products(x)
    returned = time.perf_counter() - start  # wrong: the work may not even have begun

    start = time.perf_counter()
    y[0, 0].item()
    item = time.perf_counter() - start  # wrong: it waits for the products
    # ANCHOR_END: wrong

    # ANCHOR: right
    start = time.perf_counter()  # nothing from before is running: item() has waited
    five_products(x)
    wait_for(device)
    synchronized = time.perf_counter() - start
    # ANCHOR_END: right
    print(f"the clock stopped at once: {1e3 * returned:.3f} ms (measured)")
    print(f"the next line, which reads one number: {1e3 * item:.3f} ms (measured)")
    print(f"the clock stopped after synchronize: {1e3 * synchronized:.3f} ms (measured)")
    if not on_gpu:
        return

    # ANCHOR: events (needs a GPU)
    start, end = timing_event(), timing_event()
    start.record()
    five_products(x)
    end.record()
    end.synchronize()  # elapsed_time() wants both to have happened
    milliseconds = start.elapsed_time(end)
    # ANCHOR_END: events
    print(f"between two events: {milliseconds:.3f} ms (measured)")


# ANCHOR: timing_event
def timing_event():
    return torch.cuda.Event(enable_timing=True)
# ANCHOR_END: timing_event


def network():
    torch.manual_seed(seed)
    # ANCHOR: network
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    model.to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    # ANCHOR_END: network
    return model, optimizer


# ANCHOR: step
def step(model, optimizer, x):
    """Learns to give back its input. The loss stays on the GPU."""
    loss = mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()
# ANCHOR_END: step


# ANCHOR: waiting
def waiting_loop(model, optimizer, batches):
    total = 0.0
    log = ""
    for batch in batches:
        x = batch.to(device)  # waits until the batch is there
        loss = step(model, optimizer, x)
        total += loss.item()  # waits for the step
        log += f"loss: {loss}\n"  # waits for a copy of the loss
    return total
# ANCHOR_END: waiting


# ANCHOR: ahead
def loop_that_runs_ahead(model, optimizer, batches):
    total = torch.zeros((), device=device)
    for batch in batches:
        x = batch.to(device, non_blocking=True)  # the batch is pinned
        total += step(model, optimizer, x)  # on the GPU
    return total.item()  # the only wait
# ANCHOR_END: ahead


def hidden_synchronizations():
    batches = [torch.randn(256, 256) for _ in range(steps)]
    if on_gpu:
        loss = step(*network(), batches[0].to(device))
        # ANCHOR: debug (needs a GPU)
        torch.cuda.set_sync_debug_mode("error")
        for waits in [
            lambda: batches[0].to(device),
            lambda: loss.item(),
            lambda: print(loss),
        ]:
            try:
                waits()
            except RuntimeError as error:
                print(error)
        torch.cuda.set_sync_debug_mode("default")
        # ANCHOR_END: debug

    # Both once before they are timed: the first takes memory.
    waiting_loop(*network(), batches)
    model, optimizer = network()
    wait_for(device)
    # ANCHOR: timelines
    start = time.perf_counter()
    with profile() as waiting:
        waiting_total = waiting_loop(model, optimizer, batches)
    waiting_time = time.perf_counter() - start
    # ANCHOR_END: timelines
    print(f"{waiting_total = :.4f}")
    print(f"{1e3 * waiting_time:.3f} ms, {len(waiting.events())} events (measured)")

    pinned = [batch.pin_memory() for batch in batches] if on_gpu else batches
    loop_that_runs_ahead(*network(), pinned)
    model, optimizer = network()
    wait_for(device)
    start = time.perf_counter()
    ahead_total = loop_that_runs_ahead(model, optimizer, pinned)
    ahead_time = time.perf_counter() - start
    print(f"{ahead_total = :.4f}")
    print(f"{1e3 * ahead_time:.3f} ms (measured)")


# ANCHOR: chain (needs a GPU)
def chain(x):
    """Eight small kernels, one after the other."""
    y = x.relu()
    for _ in range(1, 8):
        y = y.relu()
    return y
# ANCHOR_END: chain


# ANCHOR: one_stream (needs a GPU)
def on_one_stream(chunks):
    for chunk in chunks:
        x = chunk.to(device, non_blocking=True)
        chain(x)
# ANCHOR_END: one_stream


# ANCHOR: two_streams (needs a GPU)
def on_two_streams(chunks, copies):
    compute = torch.cuda.current_stream()
    for chunk in chunks:
        with torch.cuda.stream(copies):
            x = chunk.to(device, non_blocking=True)
        compute.wait_stream(copies)  # for this chunk; the next copy is not queued yet
        chain(x)
        x.record_stream(compute)  # its memory belongs to `copies`
# ANCHOR_END: two_streams


def until_done(work):
    """How long it takes until the device has done it; the second time, since the first takes memory."""
    for _ in range(2):
        wait_for(device)
        start = time.perf_counter()
        work()
        wait_for(device)
    return time.perf_counter() - start


def overlapping():
    # ANCHOR: chunks (needs a GPU)
    chunks = [torch.randn(1 << 20).pin_memory() for _ in range(chunk_count)]
    copies = torch.cuda.Stream()
    # ANCHOR_END: chunks
    one_time = until_done(lambda: on_one_stream(chunks))
    two_time = until_done(lambda: on_two_streams(chunks, copies))
    print(f"one stream {1e3 * one_time:.3f} ms, two {1e3 * two_time:.3f} ms (measured)")

    # ANCHOR: chains (needs a GPU)
    a, b = torch.randn(1 << 18).to(device), torch.randn(1 << 18).to(device)
    side = torch.cuda.Stream()

    def both_here():
        chain(a)
        chain(b)

    def one_beside():
        side.wait_stream(torch.cuda.current_stream())  # b was made there
        chain(a)
        with torch.cuda.stream(side):
            chain(b)
    # ANCHOR_END: chains
    one_time, two_time = until_done(both_here), until_done(one_beside)
    print(f"one stream {1e3 * one_time:.3f} ms, two {1e3 * two_time:.3f} ms (measured)")


def a_race():
    # ANCHOR: race (needs a GPU)
    side = torch.cuda.Stream()
    large = torch.ones(1024, 1024, device=device)
    x = torch.zeros(1000, device=device)
    # Once before: taking memory for the first time makes the GPU wait.
    large @ large
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        x.sum().item()

    large @ large  # this stream has something to do
    x.fill_(1.0)  # then it fills x
    with torch.cuda.stream(side):
        raced = x.sum().item()
    # ANCHOR_END: race
    torch.cuda.synchronize()
    print(f"without waiting: {raced:.0f} (measured)")

    # ANCHOR: wait_stream (needs a GPU)
    x.zero_()
    large @ large
    x.fill_(1.0)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        waited = x.sum().item()
    # ANCHOR_END: wait_stream
    torch.cuda.synchronize()
    print(f"waited_sum = {waited:.0f}")

    # ANCHOR: wait_event (needs a GPU)
    x.zero_()
    large @ large
    x.fill_(1.0)
    filled = torch.cuda.current_stream().record_event()
    large @ large  # the other stream need not wait for this
    side.wait_event(filled)
    with torch.cuda.stream(side):
        by_event = x.sum().item()
    # ANCHOR_END: wait_event
    torch.cuda.synchronize()
    print(f"event_sum = {by_event:.0f}")

    # ANCHOR: luck (needs a GPU)
    x.zero_()
    torch.cuda.synchronize()
    x.fill_(1.0)  # nothing is before it in its queue
    with torch.cuda.stream(side):
        in_time = x.sum().item()
    # ANCHOR_END: luck
    torch.cuda.synchronize()
    print(f"by luck: {in_time:.0f} (measured)")


def the_default_stream():
    # ANCHOR: no_order (needs a GPU)
    side = torch.cuda.Stream()
    # On the default stream, like everything outside a `with`.
    x = torch.ones(1000, device=device)
    with torch.cuda.stream(side):
        y = x * 2.0
    unordered_sum = y.sum().item()
    # ANCHOR_END: no_order
    torch.cuda.synchronize()
    print(f"unordered: {unordered_sum:.0f} (measured)")

    # ANCHOR: both_ways (needs a GPU)
    default = torch.cuda.default_stream()
    x = torch.ones(1000, device=device)
    side.wait_stream(default)  # before it uses what was made there
    with torch.cuda.stream(side):
        y = x * 2.0
    default.wait_stream(side)  # before y is used here
    total = y.sum().item()
    # ANCHOR_END: both_ways
    print(f"ordered_sum = {total:.0f}")

    # ANCHOR: dropped (needs a GPU)
    large = torch.ones(1024, 1024, device=device)
    side.wait_stream(default)
    with torch.cuda.stream(side):
        large @ large  # once before, here too
    torch.cuda.synchronize()

    x = torch.ones(1000, device=device)
    side.wait_stream(default)
    with torch.cuda.stream(side):
        large @ large
        y = x * 2.0  # when the product is there
    del x
    other = torch.full((1000,), 7.0, device=device)
    side.synchronize()
    dropped_sum = y.sum().item()
    # ANCHOR_END: dropped
    print(f"deleted too early: {dropped_sum:.0f} (measured)")
    del other

    # ANCHOR: recorded (needs a GPU)
    x = torch.ones(1000, device=device)
    side.wait_stream(default)
    with torch.cuda.stream(side):
        large @ large
        y = x * 2.0
    x.record_stream(side)  # its memory is not used again before side is done with it
    del x
    other = torch.full((1000,), 7.0, device=device)
    side.synchronize()
    recorded_sum = y.sum().item()
    # ANCHOR_END: recorded
    print(f"recorded_sum = {recorded_sum:.0f}")
    del other


# ANCHOR: bad_index
def bad_index(device):
    table = torch.ones(10, 4, device=device)
    ids = torch.tensor([3, 12, 5]).to(device)
    large = torch.ones(1024, 1024, device=device)
    # The GPU has something to do, as in the middle of a program.
    large @ large

    rows = table.index_select(0, ids)
    hidden = rows.tanh()
    mean = hidden.mean()
    return mean.item()
# ANCHOR_END: bad_index


def whodunit():
    try:
        bad_index(torch.device("cpu"))
    except IndexError as error:
        print(error)
    if not on_gpu:
        return
    # What such an error breaks stays broken, so each runs in a process of its own.
    subprocess.run([sys.executable, __file__, "fails"])
    subprocess.run([sys.executable, __file__, "fails where the mistake is"])
    subprocess.run([sys.executable, __file__, "afterwards"])


def fails_where_the_mistake_is():
    # ANCHOR: blocking (needs a GPU)
    # For a whole program: CUDA_LAUNCH_BLOCKING=1 in its environment. CUDA reads it once,
    # at its first use.
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
    bad_index(torch.device("cuda"))
    # ANCHOR_END: blocking


def after_the_error():
    # ANCHOR: sticks (needs a GPU)
    table = torch.ones(10, 4, device=device)
    ids = torch.tensor([3, 12, 5])
    one = torch.ones(1, device=device)
    table.index_select(0, ids.to(device))
    first = attempt(torch.cuda.synchronize)

    on_gpu = attempt(lambda: one + one)
    on_cpu = attempt(lambda: torch.ones(1) + torch.ones(1))
    looked_up = attempt(lambda: torch.ones(10, 4).index_select(0, ids))
    # ANCHOR_END: sticks
    for outcome in [first, on_gpu, on_cpu, looked_up]:
        print(f"{outcome} (measured)")


def attempt(call):
    """What comes of it: the first line of its error, or that it is right."""
    try:
        call()
        return "right"
    except (RuntimeError, IndexError) as error:
        return str(error).splitlines()[0]


if __name__ == "__main__":
    {
        "fails": lambda: bad_index(device),
        "fails where the mistake is": fails_where_the_mistake_is,
        "afterwards": after_the_error,
    }.get(sys.argv[-1], main)()
