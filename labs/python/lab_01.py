"""Lab 01 in PyTorch: devices. Why a GPU, which ones there are, and how tensors and models get onto them."""

import time

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

seed = 42
max_size = 1024


def main():
    torch.manual_seed(seed)
    why_a_gpu()
    which_gpus()
    device = portable_line()
    six_calls(device)
    there_and_back(device)
    made_where_needed(device)
    model_on_the_device(device)
    current_device()


def why_a_gpu():
    if torch.cuda.is_available():
        first_use()

    product_on_cpu(256)  # not shown: it wakes the threads of the CPU
    size = 16
    while size <= max_size:
        times = f"CPU {1e3 * product_on_cpu(size):.3f} ms"
        if torch.cuda.is_available():
            times += f", GPU {1e3 * product_on_gpu(size):.3f} ms"
        print(f"{size}: {times} (measured)")
        size *= 2


def first_use():
    device = torch.device("cuda:0")
    # ANCHOR: first_use (needs a GPU)
    first = time_of(device, lambda: torch.zeros(16, 16, device=device))
    second = time_of(device, lambda: torch.zeros(16, 16, device=device))
    # ANCHOR_END: first_use
    print(f"the first time: {1e3 * first:.3f} ms (measured)")
    print(f"the second time: {1e3 * second:.3f} ms (measured)")

    # ANCHOR: launches (needs a GPU)
    x = torch.rand(16, 16, device=device)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        (x @ x + 1.0).relu()
    launches = sum(event.name == "cudaLaunchKernel" for event in profiler.events())
    # ANCHOR_END: launches
    print(f"kernels launched: {launches} (measured)")


# ANCHOR: product
def product_on_cpu(size):
    x = torch.rand(size, size)

    start = time.perf_counter()
    x @ x
    return time.perf_counter() - start


def product_on_gpu(size):
    x = torch.rand(size, size, device="cuda:0")
    x @ x  # not timed: the first takes memory and loads code

    torch.cuda.synchronize()  # the GPU is done with all that came before
    start = time.perf_counter()
    x @ x  # only launches it
    torch.cuda.synchronize()  # now it is done
    return time.perf_counter() - start
# ANCHOR_END: product


def which_gpus():
    # ANCHOR: availability
    is_available = torch.cuda.is_available()
    device_count = torch.cuda.device_count()
    # ANCHOR_END: availability
    print(f"torch.cuda.is_available(): {is_available}")
    print(f"device_count = {device_count}")

    # ANCHOR: current
    try:
        print(f"torch.cuda.current_device(): cuda:{torch.cuda.current_device()}")
    except (RuntimeError, AssertionError) as error:
        print(f"torch.cuda.current_device() fails: {error}")
    # ANCHOR_END: current

    for index in range(device_count):
        name = torch.cuda.get_device_name(index)
        gpu = torch.cuda.get_device_properties(index)
        print(f"cuda:{index}: {name}")
        print(f"total_memory = {gpu.total_memory / 2**30:.1f} GiB")
        print(f"multi_processor_count = {gpu.multi_processor_count}")
        print(f"compute_capability = {gpu.major}.{gpu.minor}")


def portable_line():
    # ANCHOR: device
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    # ANCHOR_END: device
    print(f"The selected device is: {device}")

    # ANCHOR: long_form
    same = torch.device("cpu")
    if torch.cuda.is_available():
        same = torch.device("cuda", torch.cuda.current_device())
    # ANCHOR_END: long_form
    print(f"The same in full, by way of the current device: {same}")

    # ANCHOR: naming
    eighth = torch.device("cuda:7")
    try:
        used = torch.zeros(2).to(eighth)
    except (RuntimeError, AssertionError) as error:
        used = error
    # ANCHOR_END: naming
    print(f"Its name: {eighth}")
    print(f"A tensor on it: {used}")
    return device


def six_calls(device):
    # ANCHOR: six_calls
    on_cpu = torch.rand(1000)
    on_device = torch.rand(1000, device=device)

    call('on_cpu.to("cpu")', on_cpu, "cpu")
    call("on_cpu.to(device)", on_cpu, device)
    call("on_device.to(device)", on_device, device)
    call("on_device.to(torch.float64)", on_device, torch.float64)
    call("on_device.to(device, copy=True)", on_device, device, copy=True)
    call("on_cpu.to(device, torch.float64)", on_cpu, device, torch.float64)
    # ANCHOR_END: six_calls


# ANCHOR: call
def call(name, x, *args, **kwargs):
    """Calls `x.to(…)`: what comes back? (PyTorch counts no copies; its profiler shows
    them.)"""
    result = x.to(*args, **kwargs)
    new = "the same" if result is x else "new"
    print(f"{name}: {result.device}, {result.dtype}, {new}")
# ANCHOR_END: call


def there_and_back(device):
    # ANCHOR: there_and_back
    x = torch.tensor([0.1, 0.2])
    x_device = x.to(device)
    x_back = x_device.to("cpu")

    equal = torch.equal(x_back, x)
    # ANCHOR_END: there_and_back
    print(f"x:        {x}")
    print(f"x_device: {x_device}")
    print(f"x_back:   {x_back}")
    print(f"Equal bits: {equal}")

    # ANCHOR: item
    total = x_device.sum().item()
    # ANCHOR_END: item
    print(f"sum = {total:.2f}")


def made_where_needed(device):
    # ANCHOR: made
    moved = cost_of(device, lambda: torch.rand(1000, 1000).to(device))
    made = cost_of(device, lambda: torch.rand(1000, 1000, device=device))
    # ANCHOR_END: made
    print(f"made on the CPU and moved: {1e3 * moved:.3f} ms (measured)")
    print(f"made on the device: {1e3 * made:.3f} ms (measured)")

    if device.type == "cuda":
        torch.manual_seed(seed)  # both generators, that of the CPU and that of the GPU
        by_cpu = torch.rand(1).item()
        by_gpu = torch.rand(1, device=device).item()
        print(f"cpu_rand = {by_cpu:.4f}")
        print(f"by the GPU: {by_gpu:.4f} (measured)")


def cost_of(device, make):
    """The time it takes to make something, once it has been made before."""
    make()
    return time_of(device, make)


def time_of(device, make):
    """The time until the device is done."""
    start = time.perf_counter()
    make()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start


# ANCHOR: actor
class Actor(nn.Module):
    """What an agent does in a given state: ten numbers in, one action out."""

    def __init__(self, inputs, low, high, hidden):
        super().__init__()
        first, second, third = hidden
        self.hidden = nn.Sequential(
            nn.Linear(inputs, first),
            nn.ReLU(),
            nn.Linear(first, second),
            nn.ReLU(),
            nn.Linear(second, third),
            nn.ReLU(),
        )
        self.out = nn.Linear(third, 1)
        self.low, self.high = low, high

    def forward(self, state):
        """tanh squashes any number into [−1, 1]; from there it is stretched to
        [low, high]."""
        squashed = self.out(self.hidden(state)).tanh()
        share = (squashed + 1) / 2  # in [0, 1]
        return share * (self.high - self.low) + self.low
# ANCHOR_END: actor


def model_on_the_device(device):
    torch.manual_seed(seed)
    actor = Actor(10, -2, 2, [100, 50, 25])
    print(actor)

    # ANCHOR: half_moved
    actor.hidden.to(device)  # forgets actor.out

    first = next(actor.parameters())
    # ANCHOR_END: half_moved
    print(f"Is the first parameter on a GPU? {first.is_cuda}")

    state = torch.randn(1, 10).to(device)
    try:
        actor(state)
    except RuntimeError as error:
        print(f"Its forward pass fails: {error}")

    # ANCHOR: moved
    actor.to(device)
    # Not `== device`: "cuda" has no index, and so is not equal to "cuda:0".
    all_on_device = all(p.device.type == device.type for p in actor.parameters())
    # ANCHOR_END: moved
    print(f"All parameters on {device}: {all_on_device}")

    # ANCHOR: copies
    actor = Actor(10, -2, 2, [100, 50, 25])
    once = copies_to_device(lambda: actor.to(device))
    twice = copies_to_device(lambda: actor.to(device))
    # ANCHOR_END: copies
    print(f"copies_to_device = {once}")
    print(f"copies_to_device = {twice}")
    print(f"num_parameters = {sum(p.numel() for p in actor.parameters())}")

    with torch.no_grad():
        action = actor(state)
    print(f"action = {action.item():.4f}")


def copies_to_device(work):
    """The copies from the host to a GPU, as the profiler sees them."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        work()
    return sum("Memcpy HtoD" in event.name for event in profiler.events())


def current_device():
    if torch.cuda.device_count() < 2:
        return
    # ANCHOR: scope (needs a GPU)
    y = torch.zeros(2)
    x = y.to("cuda:0")
    with torch.cuda.device(1):
        moved, total = y.cuda(), x + 1
    # ANCHOR_END: scope
    print(f"y.cuda() is on {moved.device}, x + 1 on {total.device}")

    before = torch.cuda.current_device()
    torch.cuda.set_device(1)
    print(f"after set_device: cuda:{torch.cuda.current_device()}")
    torch.cuda.set_device(before)


if __name__ == "__main__":
    main()
