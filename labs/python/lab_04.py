"""Lab 04 in PyTorch: memory. Part A asks why a GPU runs out of it, part B how its allocator thinks.

PyTorch counts the memory of GPUs only. Without one, what has no other figure is left out.
"""

import time

import torch
from torch import nn, optim

seed = 42
batch_size = 64
limit_in_mib = 64

KIB, MIB = 2**10, 2**20

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_gpu = device.type == "cuda"


def main():
    torch.manual_seed(seed)
    first_numbers()
    if on_gpu:
        whose_bytes()
    when_does_it_die()
    if on_gpu:
        peak_of_an_iteration()
    eval_and_no_grad()
    if on_gpu:
        out_of_memory()
    kept_graphs()
    if on_gpu:
        free_is_not_returned()
        blocks_and_segments()
        fragmentation()
        the_notebook()


# Part A: why it runs out.


def first_numbers():
    # ANCHOR: first_numbers
    at_first = torch.cuda.memory_allocated()

    x = torch.zeros(1, device=device)  # one float
    of_one_float = torch.cuda.memory_allocated() - at_first
    del x

    x = torch.zeros(64, 64, device=device)
    x @ x
    del x
    # All of it is dropped again.
    of_the_first_product = torch.cuda.memory_allocated() - at_first

    before = torch.cuda.memory_allocated()
    x = torch.empty(300, 300, 300, device=device)  # 27 million
    of_a_cube = torch.cuda.memory_allocated() - before
    del x

    model = mlp()
    model.to(device)
    of_a_model = torch.cuda.memory_allocated() - before
    # ANCHOR_END: first_numbers
    print(f"{at_first = }, {of_one_float = }, {of_the_first_product = }")
    print(f"{of_a_cube = }, {of_a_model = }")


# ANCHOR: mlp
def mlp():
    return nn.Sequential(
        nn.Linear(784, 1000),
        nn.ReLU(),
        nn.Linear(1000, 1000),
        nn.ReLU(),
        nn.Linear(1000, 10),
    )
# ANCHOR_END: mlp


def whose_bytes():
    # In the first step cuBLAS and cuBLASLt take their workspaces, which stay.
    warm = nn.Linear(8, 8).to(device)
    warm(torch.ones(8, 8, device=device)).sum().backward()
    del warm

    for owner, per_stage in one_step(batch_size).items():
        for bytes_of_owner in per_stage:
            print(f"{owner} = {bytes_of_owner}")
    predict_the_largest_batch()


def one_step(batch_size):
    owned = {}

    def note(batch=()):
        owners(owned, model, optimizer, batch)

    # ANCHOR: one_step (needs a GPU)
    model = mlp()
    optimizer = optim.Adam(model.parameters())
    x = torch.randn(batch_size, 784)
    y = torch.randint(0, 10, (batch_size,))

    model.to(device)
    note()  # who owns how many bytes now?

    x, y = x.to(device), y.to(device)
    note([x, y])

    loss = nn.CrossEntropyLoss()(model(x), y)
    note([x, y])

    loss.backward()
    note([x, y])

    optimizer.step()
    note([x, y])

    optimizer.zero_grad()
    del loss, x, y
    note()
    # ANCHOR_END: one_step
    del owned["at_first"]
    return owned


def owners(owned, model, optimizer, batch):
    """Who owns how many bytes of `memory_allocated`. A block is a multiple of 512."""

    def blocks(tensors):
        return sum(-(-t.nbytes // 512) * 512 for t in tensors)

    parameters = list(model.parameters())
    states = optimizer.state.values()
    now = {
        "parameters_bytes": blocks(parameters),
        "gradients_bytes": blocks(p.grad for p in parameters if p.grad is not None),
        "exp_avg_bytes": blocks(state["exp_avg"] for state in states),
        "exp_avg_sq_bytes": blocks(state["exp_avg_sq"] for state in states),
        "batch_bytes": blocks(batch),
    }
    others = torch.cuda.memory_allocated() - sum(now.values())
    # At first they are the workspaces, and what the blocks have more than their tensors.
    now["activations_bytes"] = others - owned.setdefault("at_first", others)
    for owner, bytes_of_owner in now.items():
        owned.setdefault(owner, []).append(bytes_of_owner)


def predict_the_largest_batch():
    # ANCHOR: predict (needs a GPU)
    batch, model = batch_size, mlp()
    model.to(device)
    # By default Adam takes temporary memory, as much as the model; fused takes none.
    optimizer = optim.Adam(model.parameters(), fused=True)
    step(model, optimizer, 1)  # makes Adam's averages

    peak = peak_of_a_step(model, optimizer, batch)
    peak_doubled = peak_of_a_step(model, optimizer, 2 * batch)
    per_sample = (peak_doubled - peak) / batch
    fixed = peak - batch * per_sample

    free, _ = torch.cuda.mem_get_info()
    memory = free + torch.cuda.memory_reserved()
    largest = int((memory - fixed) / per_sample)
    # ANCHOR_END: predict
    print(f"bytes_per_sample = {per_sample:.1f}")
    print(f"what does not grow: {fixed:.0f} bytes (measured)")
    print(f"the largest batch that fits should be {largest} (measured)")


# ANCHOR: peak_of_a_step (needs a GPU)
def peak_of_a_step(model, optimizer, batch_size):
    """The most bytes that are allocated in a training step."""
    torch.cuda.reset_peak_memory_stats()
    step(model, optimizer, batch_size)
    return torch.cuda.max_memory_allocated()


def step(model, optimizer, batch_size):
    weight = next(model.parameters())
    x = torch.ones(batch_size, weight.size(1), device=weight.device)
    y = torch.zeros(batch_size, dtype=torch.int64, device=weight.device)

    loss = nn.CrossEntropyLoss()(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# ANCHOR_END: peak_of_a_step


def when_does_it_die():
    for name, batches in [
        ("peak_let", del_in_the_loop),
        ("peak_mut", reassigned),
        ("peak_shadow", three_names),
        ("peak_drop", del_before),
    ]:
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        batches()
        if on_gpu:
            peak = (torch.cuda.max_memory_allocated() - before) // MIB
            print(f"{name} = {peak}")


def use_it(tensor):
    """Stands for whatever a program does with a tensor."""


# ANCHOR: let_in_the_loop
def del_in_the_loop():
    for _ in range(3):
        batch = torch.empty(2**18, device=device)
        use_it(batch)
        # In Python a name outlives the loop's body. Without this line two batches are
        # alive at once, as when the name is assigned again.
        del batch
# ANCHOR_END: let_in_the_loop


# ANCHOR: mut_outside
def reassigned():
    batch = torch.empty(2**18, device=device)
    use_it(batch)
    for _ in range(1, 3):
        batch = torch.empty(2**18, device=device)
        use_it(batch)
# ANCHOR_END: mut_outside


# ANCHOR: shadowing
def three_names():
    # Python does not shadow: a name that is assigned again forgets what it held.
    first = torch.empty(2**18, device=device)
    use_it(first)
    second = torch.empty(2**18, device=device)
    use_it(second)
    third = torch.empty(2**18, device=device)
    use_it(third)
# ANCHOR_END: shadowing


def del_before():
    batch = torch.empty(2**18, device=device)
    use_it(batch)
    for _ in range(1, 3):
        del batch
        batch = torch.empty(2**18, device=device)
        use_it(batch)


def peak_of_an_iteration():
    model = mlp()
    model.to(device)
    # ANCHOR: peaks (needs a GPU)
    iterations = []
    optimizer = optim.Adam(model.parameters(), fused=True)
    for _ in range(3):
        torch.cuda.reset_peak_memory_stats()
        step(model, optimizer, batch_size)
        peak = torch.cuda.max_memory_allocated()

        after = torch.cuda.memory_allocated()
        optimizer.zero_grad()  # sets them to None, which frees them
        gradients = after - torch.cuda.memory_allocated()
        iterations.append((peak, after, gradients))
    # ANCHOR_END: peaks
    for peak, after, gradients in iterations:
        print(f"iteration_gradients = {gradients}")
        print(f"peak {peak}, after it {after} (measured)")


def eval_and_no_grad():
    # ANCHOR: dropout
    model = nn.Sequential(
        nn.Linear(256, 1024),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(1024, 256),
    )
    model.to(device)
    x = torch.randn(512, 256).to(device)
    # ANCHOR_END: dropout
    model(x)  # not timed: the first takes memory
    for training in [True, False]:
        # ANCHOR: modes
        model.train(training)  # model.eval() is model.train(False)
        look(model, x)
        with torch.no_grad():
            look(model, x)
        with torch.inference_mode():
            look(model, x)
        # ANCHOR_END: modes

    leaf = torch.zeros(2**18, device=device, requires_grad=True)
    for operation in [
        lambda x, y: x + 1,
        lambda x, y: x + y,
        lambda x, y: x * 2,
        lambda x, y: x * y,
        lambda x, y: x.square(),
        lambda x, y: x.relu(),
        lambda x, y: x.exp(),
    ]:
        print(f"tensors_kept = {kept_by(leaf, operation)}")


def look(model, x):
    """What a forward pass leaves in memory, its output included; whether a second one gives the same."""
    wait_for_the_device()
    before, start = torch.cuda.memory_allocated(), time.perf_counter()
    output = model(x)
    wait_for_the_device()
    kept, took = torch.cuda.memory_allocated() - before, time.perf_counter() - start
    print(f"{1e3 * took:.3f} ms (measured)")
    if on_gpu:
        print(f"bytes_kept = {kept}")
    else:
        print(f"same_output = {'yes' if torch.equal(output, model(x)) else 'no'}")


def wait_for_the_device():
    if on_gpu:
        torch.cuda.synchronize()


def kept_by(leaf, operation):
    """How many tensors an operation makes its graph keep."""
    kept = []

    def keep(tensor):
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        operation(leaf + 1, leaf + 2)
    return len(kept)


def out_of_memory():
    # ANCHOR: limit (needs a GPU)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    model.to(device)

    optimizer = optim.Adam(model.parameters(), fused=True)
    step(model, optimizer, 1)

    limit = limit_in_mib * MIB
    _, total = torch.cuda.mem_get_info()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(limit / total)
    # ANCHOR_END: limit

    # ANCHOR: doubling (needs a GPU)
    fits, too_large = 1024, 1024
    while True:
        torch.cuda.empty_cache()
        too_large *= 2
        try:
            peak = peak_of_a_step(model, optimizer, too_large)
        except torch.OutOfMemoryError as error:
            message = str(error)
            break
        fits = too_large
        print(f"a batch of {fits} fits, with a peak of {peak} bytes (measured)")
    # ANCHOR_END: doubling
    print(f"{message} (measured)")

    while too_large - fits > 128:
        torch.cuda.empty_cache()
        middle = (fits + too_large) // 2
        try:
            peak_of_a_step(model, optimizer, middle)
            fits = middle
        except torch.OutOfMemoryError:
            too_large = middle
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()
    print(f"a batch of {fits} fits, one of {too_large} does not (measured)")


def kept_graphs():
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    model.to(device)
    x = torch.randn(512, 256).to(device)
    model(x).mean().backward()  # makes the gradients, which stay

    before = torch.cuda.memory_allocated()

    def note():
        if on_gpu:
            held.append(torch.cuda.memory_allocated() - before)

    held = []
    # ANCHOR: losses
    losses, numbers = [], []
    for _ in range(3):
        loss = model(x).square().mean()
        losses.append(loss)
        note()  # how many bytes are held now?
    # ANCHOR_END: losses
    losses.clear()
    del loss
    # ANCHOR: numbers
    for _ in range(3):
        loss = model(x).square().mean()
        loss.backward()  # frees the activations
        losses.append(loss)
        note()
    losses.clear()
    for _ in range(3):
        loss = model(x).square().mean()
        losses.append(loss.detach())  # the number, on the device, without the graph
        del loss
        note()
    losses.clear()
    for _ in range(3):
        loss = model(x).square().mean()
        numbers.append(loss.item())  # the number, on the host: waits for the device
        del loss
        note()
    # ANCHOR_END: numbers
    for batch in range(3 if on_gpu else 0):
        for kind in range(4):
            print(f"bytes_held = {held[3 * kind + batch]}")


# Part B: how the allocator thinks.


def bytes_of(size):
    """A tensor that takes so many bytes. What is in it does not matter here."""
    return torch.empty(size // 4, device=device)


def three_counts():
    free, total = torch.cuda.mem_get_info()
    in_use = total - free
    return torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), in_use


def free_is_not_returned():
    torch._C._cuda_clearCublasWorkspaces()  # as if the program began here
    torch.cuda.empty_cache()
    before = three_counts()

    def note(what):
        allocated, reserved, in_use = (now - was for now, was in zip(three_counts(), before))
        print(f"{what}: {allocated} {reserved} {in_use} more bytes (measured)")

    # ANCHOR: free (needs a GPU)
    x = bytes_of(64 * MIB)
    note("x has 64 MiB")
    del x
    note("del x")
    torch.cuda.empty_cache()
    note("empty_cache()")
    # ANCHOR_END: free

    reserved = torch.cuda.memory_reserved()
    # ANCHOR: pinned_segment (needs a GPU)
    tensors = [bytes_of(512) for _ in range(4096)]
    note("4096 tensors of 512 bytes")
    one = tensors[0]  # the same memory
    del tensors
    torch.cuda.empty_cache()
    note("one is left, empty_cache()")
    # ANCHOR_END: pinned_segment
    still_held = (torch.cuda.memory_reserved() - reserved) / KIB
    print(f"still held: {still_held:.0f} KiB (measured)")
    del one
    torch.cuda.empty_cache()


def blocks_and_segments():
    torch.cuda.empty_cache()
    # ANCHOR: sizes (needs a GPU)
    sizes = [4, 1600, MIB, MIB + 4, 9 * MIB, 6 * MIB, 16 * MIB, 17 * MIB + 512 * KIB]
    grown = []
    tensors = []
    for size in sizes:
        allocated = torch.cuda.memory_allocated()
        reserved = torch.cuda.memory_reserved()
        tensors.append(bytes_of(size))
        block = torch.cuda.memory_allocated() - allocated
        segment = torch.cuda.memory_reserved() - reserved
        grown.append((block, segment))
    # ANCHOR_END: sizes
    for asked, (block, segment) in zip(sizes, grown):
        print(f"{asked = }, {block = }")
        print(f"its segment: {segment} bytes (measured)")

    # ANCHOR: merge (needs a GPU)
    del tensors[3]  # D
    del tensors[1]  # B
    del tensors[0]  # A
    tensors.append(bytes_of(3 * MIB))  # I
    # ANCHOR_END: merge
    for segment in torch.cuda.memory_snapshot():
        blocks = [(block["size"], block["state"]) for block in segment["blocks"]]
        print(f"{segment['segment_type']} {segment['total_size']}: {blocks} (measured)")
    del tensors
    torch.cuda.empty_cache()


def fragmentation():
    torch.cuda.empty_cache()
    _, total = torch.cuda.mem_get_info()
    # ANCHOR: fragments (needs a GPU)
    # What there is already (the workspaces), and 80 MiB.
    limit = torch.cuda.memory_reserved() + 80 * MIB
    torch.cuda.set_per_process_memory_fraction((limit + 0.5) / total)

    tensors = []
    try:
        while True:
            tensors.append(bytes_of(2 * MIB))
    except torch.OutOfMemoryError:
        made = len(tensors)
    left = tensors[::2]
    del tensors  # every second dies

    free = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    try:
        twelve = bytes_of(12 * MIB)
    except torch.OutOfMemoryError as error:
        twelve = error
    # ANCHOR_END: fragments
    print(f"{made} made, {len(left)} left, {free} bytes free (measured)")
    print(f"there was {'room' if torch.is_tensor(twelve) else 'no room'} for more")
    del twelve, left
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()

    by_default = after_a_cut()
    torch._C._accelerator_setAllocatorSettings("max_split_size_mb:20")
    with_max_split_size = after_a_cut()
    torch._C._accelerator_setAllocatorSettings("")
    print(f"reserved_by_default = {by_default}")
    print(f"reserved_with_max_split_size = {with_max_split_size}")


# ANCHOR: after_a_cut (needs a GPU)
def after_a_cut():
    """Takes 64 MiB and drops them, takes 12 MiB, which may be cut from them, and takes
    64 MiB again. Returns how much is reserved for that."""
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    x = bytes_of(64 * MIB)
    del x
    twelve = bytes_of(12 * MIB)
    again = bytes_of(64 * MIB)
    reserved = torch.cuda.memory_reserved() - before
    del twelve, again
    torch.cuda.empty_cache()
    return reserved
# ANCHOR_END: after_a_cut


def the_notebook():
    torch.cuda.empty_cache()
    # What earlier sections left, which a new notebook would not have: the workspaces.
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    shows = [torch.cuda.max_memory_allocated() - allocated]
    # ANCHOR: notebook (needs a GPU)
    x = torch.zeros(1, device=device)  # something small, before, and gone
    del x

    x = torch.empty(300, 300, 300, device=device)
    shows.append(torch.cuda.memory_reserved() - reserved)

    x = torch.empty(300, 300, 300, device=device)  # the cell runs again
    true_peak = torch.cuda.max_memory_allocated() - allocated
    torch.cuda.reset_peak_memory_stats()
    shows.append(torch.cuda.max_memory_allocated() - allocated)

    shows.append(torch.cuda.max_memory_reserved() - reserved)
    shows.append(torch.cuda.memory_allocated() - allocated)
    # ANCHOR_END: notebook
    # Of the reserved bytes a small segment may be missing, if an earlier section has left
    # one: lab_04_notebook.py begins from nothing.
    print(f"{shows} (measured)")
    print(f"{true_peak = }")
    del x
    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
