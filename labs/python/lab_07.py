"""Lab 07 in PyTorch: cuDNN's choice of an algorithm, its search for the fastest, the same bits every time, TF32,
and the memory format of images."""

import math
import os
import struct
import time

# Without it, use_deterministic_algorithms(True) refuses products on a GPU. cuBLAS reads it once.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch import nn, optim
from torch.autograd import DeviceType
from torch.backends import cudnn
from torch.nn.functional import conv2d
from torch.profiler import profile

seed = 42
steps = 20
size = 512

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_gpu = device.type == "cuda"


def main():
    torch.manual_seed(seed)
    four_questions()
    if on_gpu:
        one_convolution()
        rule_or_search()
        when_it_never_pays()
        memory_to_work_in()
    the_same_bits()
    ten_bits()
    channels_last()


def four_questions():
    # ANCHOR: questions
    built = torch.backends.cuda.is_built()
    gpu = torch.cuda.is_available()
    available = cudnn.is_available()
    enabled = cudnn.enabled
    version = cudnn.version()
    # ANCHOR_END: questions
    print(f"built {built}, a GPU {gpu}, cuDNN {available}, version {version} (measured)")
    matmul = torch.backends.cuda.matmul
    for flag in [enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32, matmul.allow_tf32]:
        print(f"flag = {str(flag).lower()}")


def wait_for_the_device():
    if on_gpu:
        torch.cuda.synchronize()


def time_of(run):
    """The time until the work is done."""
    start = time.perf_counter()
    run()
    wait_for_the_device()
    return time.perf_counter() - start


def kernels(profiler):
    """What the GPU ran, in order."""
    return [event for event in profiler.events() if event.device_type == DeviceType.CUDA]


# ANCHOR: convolution
def convolution(images, from_channels, to_channels, size, kernel):
    """A convolution, and square images to use it on."""
    # Enough zeros around an image to keep its size.
    conv = nn.Conv2d(
        from_channels, to_channels, kernel, padding=kernel // 2, bias=False
    )
    x = torch.randn(images, from_channels, size, size)
    return conv.to(device), x.to(device)
# ANCHOR_END: convolution


def in_f64(conv, x):
    """The convolution on the host and with 53 significant bits."""
    return conv2d(x.cpu().double(), conv.weight.detach().cpu().double(), padding=1)


# ANCHOR: error
def error(found, exact):
    """The largest error, in millionths of the largest value."""
    difference = found.detach().cpu().double() - exact
    return 1e6 * (difference.abs().max() / exact.abs().max()).item()
# ANCHOR_END: error


def one_convolution():
    # ANCHOR: tried (needs a GPU)
    # 16 images of 16 × 16 pixels, from 32 channels to 32.
    conv, x = convolution(16, 32, 32, 16, 3)
    cudnn.benchmark = True  # try them all
    with profile() as profiler, torch.no_grad():
        conv(x)
    cudnn.benchmark = False
    tried = kernels(profiler)
    # ANCHOR_END: tried
    for kernel in tried:
        print(f"{kernel.name}: {kernel.device_time:.1f} µs (measured)")

    exact = in_f64(conv, x)
    results = []
    # ANCHOR: three_ways (needs a GPU)
    for name, flags in [
        ("by default", dict(enabled=True)),
        ("benchmark", dict(enabled=True, benchmark=True)),
        ("not enabled", dict(enabled=False)),
    ]:
        with cudnn.flags(**flags), profile() as profiler, torch.no_grad():
            y = conv(x)
        results.append((name, y, kernels(profiler)))
    # ANCHOR_END: three_ways
    for name, y, ran in results:
        by = ran[-1].name if ran else "none"
        same = torch.equal(y, results[0][1])
        print(f"{name}: {by}, an error of {error(y, exact):.0f}, as first {same} (measured)")


# ANCHOR: convolutions
# What each is called here, images, channels before and after, pixels across, and the
# size of the kernel.
CONVOLUTIONS = [
    ("3×3, 32→32", 8, 32, 32, 24, 3),
    ("3×3, 64→64", 4, 64, 64, 16, 3),
    ("5×5, 3→32", 8, 3, 32, 32, 5),
    ("1×1, 64→128", 8, 64, 128, 16, 1),
]
# ANCHOR_END: convolutions


def rule_or_search():
    for name, images, before, after, size, kernel in CONVOLUTIONS:
        # ANCHOR: first_and_later (needs a GPU)
        conv, x = convolution(images, before, after, size, kernel)
        conv.requires_grad_(False)
        time_of(lambda: conv(x))  # ignored: the first call takes memory
        rule = time_of(lambda: conv(x))
        cudnn.benchmark = True
        first = time_of(lambda: conv(x))  # tries all
        later = time_of(lambda: conv(x))  # takes the fastest
        # ANCHOR_END: first_and_later
        cudnn.benchmark = False
        print(f"{name}: {1e6 * rule:.1f} µs, {1e6 * first:.1f} µs, {1e6 * later:.1f} µs (measured)")


def when_it_never_pays():
    # ANCHOR: loops (needs a GPU)
    conv, images = convolution(30, 32, 8, 16, 3)
    epoch = images.split(8)  # 8, 8, 8, 6
    later = 7 * epoch
    sizes = [torch.randn(8, 32, n, n, device=device) for n in [9, 11, 13, 17, 19, 21]]
    others = [torch.randn(8, 32, n, n, device=device) for n in [10, 12, 14, 18, 20, 22]]
    every = dict(enabled=True, benchmark=True, benchmark_limit=0)  # 0: all there are
    one = dict(enabled=True, benchmark=True, benchmark_limit=1)
    loops = [
        ("first epoch, 8 8 8 6", epoch, every),
        ("seven more epochs", later, every),
        ("six sizes of images", sizes, every),
        ("the same six again", sizes, every),
        ("six others, limit 1", others, one),
        ("the same six again", others, one),
    ]
    # ANCHOR_END: loops
    for name, batches, on in loops:
        forward_all(conv, batches)  # not looked at: takes memory
        off_time = forward_all(conv, batches)
        with cudnn.flags(**on):
            on_time = forward_all(conv, batches)
        print(f"{name}: {1e6 * off_time:.0f} µs off, {1e6 * on_time:.0f} µs on (measured)")


# ANCHOR: forward_all (needs a GPU)
def forward_all(conv, batches):
    """How long it takes to convolve all batches. (PyTorch does not say which of the
    calls were searches; they are the slow ones.)"""

    def forward():
        with torch.no_grad():
            for x in batches:
                conv(x)

    return time_of(forward)
# ANCHOR_END: forward_all


def memory_to_work_in():
    # ANCHOR: peaks (needs a GPU)
    conv, x = convolution(8, 32, 8, 24, 3)

    def peak():
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        with torch.no_grad():
            conv(x)
        return torch.cuda.max_memory_allocated(device) - before

    by_rule = peak()
    cudnn.benchmark = True
    in_search = peak()
    after_it = peak()
    cudnn.benchmark = False
    # ANCHOR_END: peaks
    print(f"by the rule {by_rule}, in the search {in_search}, after it {after_it} (measured)")

    # ANCHOR: no_room (needs a GPU)
    conv, x = convolution(4, 64, 64, 16, 3)
    held, runs = [], []
    for full in [False, True]:
        if full:
            torch.cuda.empty_cache()
            reserved = torch.cuda.memory_reserved(device)
            _, total = torch.cuda.mem_get_info(device)
            torch.cuda.set_per_process_memory_fraction(reserved / total, device)
            try:
                while True:
                    held.append(torch.zeros(1 << 19, device=device))
            except torch.OutOfMemoryError:
                pass
        with profile() as profiler, torch.no_grad():
            conv(x)
        runs.append(("full" if full else "with room", kernels(profiler)))
    # ANCHOR_END: no_room
    torch.cuda.set_per_process_memory_fraction(1.0, device)
    for name, ran in runs:
        print(f"{name}: {[kernel.name for kernel in ran]} (measured)")


# ANCHOR: network
def network():
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 8 * 8, 10),
    )
    return net.to(device)


def data():
    """32 images of noise, each of a class."""
    x, classes = torch.randn(32, 1, 16, 16), torch.arange(32) % 10
    return x.to(device), classes.to(device)
# ANCHOR_END: network


# ANCHOR: train
def train():
    """Trains a new network. Returns the last loss, and all weights."""
    torch.manual_seed(seed)
    (x, y), net = data(), network()
    sgd = optim.SGD(net.parameters(), lr=0.1)
    loss_fn = nn.CrossEntropyLoss()
    for _ in range(steps):
        loss = loss_fn(net(x), y)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        last = loss.item()
    weights = torch.cat([p.detach().flatten() for p in net.parameters()])
    return last, weights
# ANCHOR_END: train


def the_same_bits():
    # ANCHOR: order
    a, b, c = torch.tensor([1e8, -1e8, 1.0])
    from_the_left = (a + b) + c
    from_the_right = a + (b + c)
    # ANCHOR_END: order
    print(f"sum = {from_the_left.item()}")
    print(f"sum = {from_the_right.item()}")

    # ANCHOR: gradients
    torch.manual_seed(seed)
    (x, y), net = data(), network()

    def gradient():
        net.zero_grad()
        nn.CrossEntropyLoss()(net(x), y).backward()
        return net[0].weight.grad

    as_it_is = [gradient() for _ in range(5)]
    cudnn.deterministic = True
    deterministic = [gradient() for _ in range(5)]
    cudnn.deterministic = False
    # ANCHOR_END: gradients
    for first, *later in [as_it_is, deterministic]:
        differing_runs = sum(not torch.equal(first, run) for run in later)
        print(f"{differing_runs = }")

    trained = []
    # ANCHOR: trainings
    for setting in ["a seed", "+ deterministic", "+ everywhere"]:
        cudnn.deterministic = setting == "+ deterministic"
        torch.use_deterministic_algorithms(setting == "+ everywhere")
        trained.append((setting, train(), train()))
    # ANCHOR_END: trainings
    torch.use_deterministic_algorithms(False)
    for setting, (loss, weights), (again, others) in trained:
        differ = (weights != others).sum().item()
        differing_weights = {0: "none", len(weights): "all"}.get(differ, "some")
        print(f"{loss = :.4f}, {again = :.4f}, {differing_weights = !s}")
    if on_gpu:
        what_order_costs()


def what_order_costs():
    for name, images, before, after, size in [
        ("5×5, 3→32", 8, 3, 32, 32),
        ("3×3, 64→64", 8, 64, 64, 16),
    ]:
        conv, x = convolution(images, before, after, size, int(name[0]))
        for deterministic in [False, True]:
            # ANCHOR: cost (needs a GPU)
            flags = dict(enabled=True, deterministic=deterministic)
            with cudnn.flags(**flags), profile() as profiler:
                conv(x).sum().backward()
            ran = kernels(profiler)
            # ANCHOR_END: cost
            took = sum(kernel.device_time for kernel in ran)
            print(f"{name}, {deterministic}: {len(ran)} kernels, {took:.1f} µs (measured)")


# ANCHOR: tf32
def tf32(x):
    """The nearest TF32: of the 23 bits of the fraction the first 10 stay."""
    (bits,) = struct.unpack("I", struct.pack("f", x))
    half_a_step = 1 << 12
    dropped = (1 << 13) - 1
    return struct.unpack("f", struct.pack("I", (bits + half_a_step) & ~dropped))[0]


def rounded(x):
    bits = x.view(torch.int32)
    return ((bits + (1 << 12)) & ~((1 << 13) - 1)).view(torch.float32)
# ANCHOR_END: tf32


def ten_bits():
    for x in [1.0, 0.1, math.pi, 2049.0]:
        print(f"tf32 = {tf32(x):.8g}")

    # ANCHOR: products
    torch.manual_seed(seed)
    a, b = torch.randn(size, size), torch.randn(size, size)
    exact = a.double() @ b.double()
    results = []
    for name, allow, a, b in [
        ("f32", False, a, b),
        ("allow_tf32", True, a, b),
        ("rounded by hand", False, rounded(a), rounded(b)),
    ]:
        a, b = a.to(device), b.to(device)
        torch.backends.cuda.matmul.allow_tf32 = allow
        took = time_of(lambda: a @ b)
        product = a @ b
        results.append((name, error(product, exact), product, took))
    torch.backends.cuda.matmul.allow_tf32 = False
    # ANCHOR_END: products
    for name, of_product, product, took in results:
        as_tf32 = torch.equal(product, results[1][2])
        print(f"{name}: an error of {of_product:.1f}, as with TF32 {as_tf32}, {1e6 * took:.1f} µs (measured)")

    conv, x = convolution(16, 32, 32, 16, 3)
    exact = in_f64(conv, x)
    results = []
    # ANCHOR: conv_tf32
    for name, allow_tf32 in [("by default", True), ("allow_tf32=False", False)]:
        with cudnn.flags(enabled=True, allow_tf32=allow_tf32), torch.no_grad():
            took = time_of(lambda: conv(x))
            results.append((name, conv(x), took))
    # ANCHOR_END: conv_tf32
    for name, y, took in results:
        print(f"{name}: an error of {error(y, exact):.1f}, {1e6 * took:.1f} µs (measured)")


def channels_last():
    # ANCHOR: formats
    # 2 images of 3 channels, with 4 rows of 5 pixels.
    images = torch.ones(2, 3, 4, 5, device=device)
    last = images.to(memory_format=torch.channels_last)
    doubled = last * 2

    conv = nn.Conv2d(3, 8, 3)
    conv.to(device)
    conv.to(memory_format=torch.channels_last)  # reorders its weight
    result = conv(last)  # strides: (48, 1, 24, 8)
    # ANCHOR_END: formats
    for name, tensor in [("images", images), ("last", last), ("doubled", doubled)]:
        print(f"{name:7}  {str(tuple(tensor.shape))}  {tensor.stride()}")
    print(f"result   {tuple(result.shape)}")


if __name__ == "__main__":
    main()
