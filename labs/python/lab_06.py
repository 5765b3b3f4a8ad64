"""Lab 06 in PyTorch: mixed precision. Half the bits, and what to do about the other half."""

import math
import struct
import time

import torch
from torch import nn, optim
from torch.amp import GradScaler, autocast
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, TensorDataset

seed = 42
steps = 30
batches = 4096  # the loss is the mean over so many

POINTS, HIDDEN = 1024, 64

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def main():
    a_number()
    by_type()
    who_runs_in_what()
    vanishing()
    scaled()
    side_by_side()
    slower()
    on_images()


# ANCHOR: formats
def tf32(x):
    """The nearest number with 10 bits of fraction. PyTorch has no such type: tensor
    cores round to it."""
    (bits,) = struct.unpack("I", struct.pack("f", x))
    (nearest,) = struct.unpack("f", struct.pack("I", (bits + 0x1000) & ~0x1FFF))
    return nearest


def nearest(x, dtype):
    return torch.tensor(x, dtype=dtype).item()


formats = {
    "float32": lambda x: nearest(x, torch.float32),
    "TF32": tf32,
    "bfloat16": lambda x: nearest(x, torch.bfloat16),
    "float16": lambda x: nearest(x, torch.float16),
}
# ANCHOR_END: formats


def short(x):
    """As one would write it by hand: `65504`, `6.0e-8`."""
    if x == 0 or math.isinf(x) or 1e-3 <= abs(x) < 1e6:
        return f"{x:.8g}"
    digits, exponent = f"{x:.1e}".split("e")
    return f"{digits}e{int(exponent)}"


def shortest(x):
    """The fewest digits that give the same float32."""
    digits = (f"{x:.{count}g}" for count in range(1, 10))
    return next(text for text in digits if nearest(float(text), torch.float32) == x)


def a_number():
    for tenth in (rounded(0.1) for rounded in formats.values()):
        print(f"tenth = {shortest(tenth)}")
    for dtype in [torch.float32, torch.bfloat16, torch.float16]:
        info = torch.finfo(dtype)
        print(f"smallest_normal = {short(info.tiny)}")
        print(f"after_one = {1 + info.eps:.8g}")
    for x in [math.pi, 2049.0, 70000.0, 1e-8]:
        for rounded in formats.values():
            print(f"held = {short(rounded(x))}")

    for dtype in [torch.float32, torch.bfloat16, torch.float16]:
        # ANCHOR: adding
        weight = torch.full((), 1.0, dtype=dtype, device=device)
        with torch.no_grad():
            for _ in range(1000):
                weight += 1e-4
        after = weight.item()
        # ANCHOR_END: adding
        print(f"weight = {after:.4f}")


# ANCHOR: on_gpu (needs a GPU)
def device_time(run):
    """How long the device itself takes for `run`, without the host's part."""
    if device.type != "cuda":
        return time_of(run)
    busy = torch.empty(1 << 22, device=device)
    run()  # not timed: the first takes memory
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    busy.zero_()  # something to do, while the host asks for the rest
    start.record()
    run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3
# ANCHOR_END: on_gpu


# ANCHOR: jobs
def product(dtype, size):
    x = torch.ones(size, size, dtype=dtype, device=device)
    return device_time(lambda: x @ x)


def relu(dtype):
    x = torch.ones(1 << 22, dtype=dtype, device=device)
    return device_time(lambda: x.relu())
# ANCHOR_END: jobs


def by_type():
    for dtype in [torch.float32, torch.bfloat16, torch.float16]:
        print(f"product, {dtype}: {1e3 * product(dtype, 1024):.3f} ms (measured)")
    print(f"float16, sizes of 1023: {1e3 * product(torch.float16, 1023):.3f} ms (measured)")
    torch.backends.cuda.matmul.allow_tf32 = True
    print(f"product, TF32: {1e3 * product(torch.float32, 1024):.3f} ms (measured)")
    torch.backends.cuda.matmul.allow_tf32 = False
    for dtype in [torch.float32, torch.float16]:
        print(f"ReLU, {dtype}: {1e3 * relu(dtype):.3f} ms (measured)")


# ANCHOR: rings
def rings():
    """Points in a square, and which of three rings around its middle each is in."""
    torch.manual_seed(seed)
    x = torch.rand(POINTS, 2) * 2 - 1
    r2 = (x * x).sum(1)
    ring = (r2 > 0.3).long() + (r2 > 0.7).long()
    return x.to(device), ring.to(device)
# ANCHOR_END: rings


# ANCHOR: network
def classifier():
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(2, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, 3),
    )
    return model.to(device)
# ANCHOR_END: network


# ANCHOR: options
def casting(half):
    """Autocast to that type; without one, it casts nothing."""
    return autocast(device.type, dtype=half, enabled=half is not None)
# ANCHOR_END: options


# ANCHOR: loss
def loss_of(model, x, y, batches):
    """The forward pass and the loss, the mean over that many batches as large as this
    one."""
    return cross_entropy(model(x), y) / batches
# ANCHOR_END: loss


def who_runs_in_what():
    x, y = rings()
    # ANCHOR: types
    first = nn.Linear(2, HIDDEN).to(device)
    last = nn.Linear(HIDDEN, 3).to(device)
    with autocast(device.type, dtype=torch.float16):
        hidden = first(x)
        active = hidden.relu()
        scores = last(active)
        loss = cross_entropy(scores, y)
    loss.backward()  # outside
    # ANCHOR_END: types
    for tensor in [x, hidden, active, scores, loss, last.weight, last.weight.grad]:
        name = str(tensor.dtype).removeprefix("torch.")
        print(f"type = {name}, bytes = {tensor.nbytes}")
    if device.type == "cuda":
        the_cache(last, active.detach())


def the_cache(layer, x):
    for cache_enabled in [True, False]:
        # ANCHOR: cache (needs a GPU)
        options = dict(dtype=torch.float16, cache_enabled=cache_enabled)
        with torch.profiler.profile() as profiler:
            with autocast("cuda", **options):
                layer(x)
                layer(x)
        launches = sum("LaunchKernel" in event.name for event in profiler.events())
        # ANCHOR_END: cache
        print(f"launches, cache {cache_enabled}: {launches} (measured)")


# ANCHOR: watch
def watch(model, x):
    """The forward pass, with zeros added to each linear layer's result. The zeros get
    the gradient of that result."""
    zeros = []
    for module in model:
        x = module(x)
        if isinstance(module, nn.Linear):
            zero = torch.zeros_like(x, requires_grad=True)
            x = x + zero
            zeros.append(zero)
    return x, zeros
# ANCHOR_END: watch


def gradients(half):
    """The gradients of the results of the layers, after a step backward."""
    x, y = rings()
    model = classifier()
    # ANCHOR: gradients
    with casting(half):
        scores, watched = watch(model, x)
    loss = cross_entropy(scores.float(), y) / batches
    loss.backward()
    # ANCHOR_END: gradients
    return [zero.grad for zero in watched]


def vanishing():
    whole = gradients(None)
    values = torch.cat([gradient.flatten() for gradient in whole])
    values = values[values != 0]
    # ANCHOR: lost
    # Up to the first size a float16 becomes 0, and below the second it has fewer digits.
    half_of_smallest, all_digits = 2**-25, 2**-14
    lost = (values.abs() <= half_of_smallest).sum().item()
    worn = (values.abs() < all_digits).sum().item() - lost
    # ANCHOR_END: lost
    print(f"{batches = }")
    print(f"lost_share = {100 * lost / len(values):.0f} %")
    print(f"worn_share = {100 * worn / len(values):.0f} %")

    in_half, in_brain = gradients(torch.float16), gradients(torch.bfloat16)
    for single, half, brain in zip(whole, in_half, in_brain):
        print(f"float32_zeros = {percent_zeros(single):.0f} %")
        print(f"float16_zeros = {percent_zeros(half):.0f} %")
        print(f"bfloat16_zeros = {percent_zeros(brain):.0f} %")


def percent_zeros(x):
    return 100 * (x == 0).float().mean().item()


# ANCHOR: scaler
def scaler_of(enabled, init_scale):
    """A scaler that doubles its scale after ten good steps instead of 2000."""
    return GradScaler(
        device.type, enabled=enabled, init_scale=init_scale, growth_interval=10
    )
# ANCHOR_END: scaler


def scaled():
    x, y = rings()
    model = classifier()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    skipped, moved = 0, "no"
    # ANCHOR: walk
    scaler = scaler_of(True, 2.0**36)
    for step in range(1, steps + 1):
        scale, weight = scaler.get_scale(), model[0].weight.detach().clone()
        optimizer.zero_grad()
        with casting(torch.float16):
            loss = loss_of(model, x, y, batches)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        stepped = scaler.get_scale() >= scale  # it falls after a step that is skipped
        # ANCHOR_END: walk
        if not stepped:
            skipped += 1
            if not torch.equal(weight, model[0].weight):
                moved = "yes"
        if scaler.get_scale() != scale:
            new_scale = scaler.get_scale()
            print(f"scale = 2^{math.log2(scale):.0f}, new_scale = 2^{math.log2(new_scale):.0f}")
    print(f"{skipped = }, moved = {moved}")

    model = classifier()
    optimizer = optim.Adam(model.parameters())
    # ANCHOR: clip
    scaler = scaler_of(True, 65536.0)
    with casting(torch.float16):
        loss = loss_of(model, x, y, 1)
    scaler.scale(loss).backward()
    # Clips nothing.
    too_early = clip_grad_norm_(model.parameters(), math.inf).item()
    scaler.unscale_(optimizer)
    norm = clip_grad_norm_(model.parameters(), 0.1).item()
    clipped = clip_grad_norm_(model.parameters(), math.inf).item()
    scaler.step(optimizer)  # does not unscale again
    # ANCHOR_END: clip
    print(f"norm = {norm:.2f}, clipped_norm = {clipped:.2f}")
    print(f"before unscale_: {too_early:.0f} (measured)")


def train(half, is_scaled):
    x, y = rings()
    model = classifier()
    # ANCHOR: train
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    scaler = scaler_of(is_scaled, 65536.0)
    skipped = 0

    def step():
        nonlocal skipped
        optimizer.zero_grad()
        with casting(half):
            loss = loss_of(model, x, y, batches)
        scale = scaler.get_scale()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        skipped += scaler.get_scale() < scale
        return loss.detach()
    # ANCHOR_END: train

    for _ in range(steps):
        loss = step()
    with torch.no_grad():
        accuracy = (model(x).argmax(1) == y).float().mean().item()
    return loss.item() * batches, accuracy, skipped


def side_by_side():
    for half, is_scaled in [
        (None, False),
        (torch.float16, False),
        (torch.float16, True),
        (torch.bfloat16, False),
    ]:
        final_loss, accuracy, skipped = train(half, is_scaled)
        print(f"{final_loss = :.1f}, {accuracy = :.1f}, steps_skipped = {skipped}")


def slower():
    for rows, width in [(64, 64), (64, 1024), (768, 512)]:
        for half in [None, torch.float16]:
            took = step_of(rows, width, half)
            print(f"{rows} x {width}, {half}: {1e3 * took:.2f} ms (measured)")


def step_of(rows, width, half):
    x = torch.ones(rows, width, device=device)
    y = torch.zeros(rows, dtype=torch.int64, device=device)
    # ANCHOR: step
    model = nn.Sequential(
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 16),
    )
    model.to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scaler = scaler_of(half is not None, 1024.0)

    def step():
        optimizer.zero_grad()
        with casting(half):
            loss = loss_of(model, x, y, 1)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    # ANCHOR_END: step
    step()  # not timed: the first takes memory
    return sorted(time_of(step) for _ in range(3))[1]


def time_of(run):
    """How long it takes until the work of `run` is done."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


# ANCHOR: images
def images(count):
    """Images with pixels from -2 to 2, made here: each class has its own brightness.
    For images from files torchvision has `datasets.CIFAR10(root, transform=…)`."""
    y = torch.arange(count) % 10
    x = torch.rand(count, 3, 32, 32) / 2 + y.view(-1, 1, 1, 1) / 20
    normalize = lambda pixels: (pixels - 0.5) / 0.25
    return TensorDataset(normalize(x), y)
# ANCHOR_END: images


# ANCHOR: convolutions
def convolutions(channels, height, width):
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Conv2d(channels, 8, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),  # half as high and half as wide
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d((height // 2, width // 2)),  # the largest, wherever it is
        nn.Flatten(),
        nn.Linear(16, 10),
    )
    return model.to(device)
# ANCHOR_END: convolutions


def on_images():
    torch.manual_seed(seed)
    few = DataLoader(images(640), batch_size=8, shuffle=True)
    many = next(iter(DataLoader(images(64), batch_size=64)))
    for half in [None, torch.float16, torch.bfloat16]:
        model = convolutions(3, 32, 32)
        # ANCHOR: train_images
        optimizer = optim.Adam(model.parameters(), lr=0.01)
        scaler = scaler_of(half == torch.float16, 65536.0)

        def step(x, y):
            optimizer.zero_grad()
            with casting(half):
                loss = cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss.detach()
        # ANCHOR_END: train_images
        for x, y in few:
            loss = step(x.to(device), y.to(device))
        x, y = (part.to(device) for part in many)
        step(x, y)  # not timed: the first takes memory
        took = time_of(lambda: step(x, y))
        print(f"{half}: a loss of {loss.item():.2f}, {1e3 * took:.2f} ms a step (measured)")


if __name__ == "__main__":
    main()
