# What PyTorch 2.11 computes in 2,000 random programs of views and writes: `python views_written.py > views_written.txt`.
#
# A line is a program, then its outcome. A program starts with two leaves of 3×4, tensors 0 and 1, and has steps that
# make tensors 2, 3, … or write to tensors; `!` before a step runs it under no_grad. `views_written.rs` reads them:
#
#     copy I | add I K | times I K | mul I J | relu I | square I          a new tensor
#     view I SIZES | t I | select I DIM N | narrow I DIM START LENGTH | split I SIZE | unsqueeze I | expand I N | detach I
#     mul_ I K | add_ I K | muls_ I J | adds_ I J | copy_ I J | zero_ I | fill_ I K | relu_ I | square_ I     a write
#
# At the end, each tensor that requires grad is multiplied by its number and added to the loss. The outcome is the
# gradients of both leaves and the names of the nodes, or the first line of the first error. After the error about a
# tensor that was overwritten before backward needed it, `~` and the outcome of a run that keeps a copy of such tensors.
import random
import warnings

import torch

warnings.simplefilter("ignore")
torch.set_num_threads(1)


def leaves():
    x = torch.arange(1, 13, dtype=torch.float64).reshape(3, 4) / 8
    w = torch.arange(12, 0, -1, dtype=torch.float64).reshape(3, 4) / 4 - 1
    return [x.requires_grad_(), w.requires_grad_()]


def run_step(tensors, step):
    name, *rest = step.split()
    x = tensors[int(rest[0])]
    number = lambda i: float(rest[i])
    whole = lambda i: int(rest[i])
    other = lambda: tensors[whole(1)]
    new = {
        "copy": lambda: x.clone(),
        "add": lambda: x + number(1),
        "times": lambda: x * number(1),
        "mul": lambda: x * other(),
        "relu": lambda: x.relu(),
        "square": lambda: x.square(),
        "view": lambda: x.view([int(size) for size in rest[1].split("x")]),
        "t": lambda: x.t(),
        "select": lambda: x.select(whole(1), whole(2)),
        "narrow": lambda: x.narrow(whole(1), whole(2), whole(3)),
        "split": lambda: x.split(whole(1)),
        "unsqueeze": lambda: x.unsqueeze(0),
        "expand": lambda: x.unsqueeze(0).expand(whole(1), *[-1] * x.ndim),
        "detach": lambda: x.detach(),
    }
    write = {
        "mul_": lambda: x.mul_(number(1)),
        "add_": lambda: x.add_(number(1)),
        "muls_": lambda: x.mul_(other()),
        "adds_": lambda: x.add_(other()),
        "copy_": lambda: x.copy_(other()),
        "zero_": lambda: x.zero_(),
        "fill_": lambda: x.fill_(number(1)),
        "relu_": lambda: x.relu_(),
        "square_": lambda: x.square_(),
    }
    if name in write:
        write[name]()
    else:
        made = new[name]()
        tensors.extend(made if isinstance(made, tuple) else [made])


def step(tensors, step):
    if step.startswith("!"):
        with torch.no_grad():
            run_step(tensors, step[1:])
    else:
        run_step(tensors, step)


def outcome(steps):
    tensors = leaves()
    try:
        for one in steps:
            step(tensors, one)
        loss = sum((i + 1) * t.sum() for i, t in enumerate(tensors) if t.requires_grad)
        names = [type(t.grad_fn).__name__ if t.grad_fn is not None else "-" for t in tensors]
        loss.backward()
    except RuntimeError as error:
        return "! " + str(error).splitlines()[0]
    return gradients(tensors, names)


def gradients(tensors, names):
    grads = [" ".join(f"{g:g}" for g in leaf.grad.flatten().tolist()) for leaf in tensors[:2]]
    return " / ".join([*grads, " ".join(names)])


def outcomes(steps):
    first = outcome(steps)
    if not first.startswith("! one of the variables needed for gradient computation has been modified"):
        return first
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        return f"{first} ~ {outcome(steps)}"


def candidates(tensors, rng):
    """A random step that fits the tensors' sizes."""
    i = rng.randrange(len(tensors)) if rng.random() < 0.3 else len(tensors) - 1 - rng.randrange(min(4, len(tensors)))
    parts = [j for j, t in enumerate(tensors) if t._is_view() and t.requires_grad and not t._base.is_leaf]
    if parts and rng.random() < 0.5:
        i = rng.choice(parts)
    x = tensors[i]
    same = [j for j, other in enumerate(tensors) if other.shape == x.shape]
    k = rng.choice(["2", "0.5", "-1", "3"])
    steps = [f"copy {i}", f"add {i} {k}", f"times {i} {k}", f"mul {i} {rng.choice(same)}", f"relu {i}", f"square {i}"]
    views = [f"unsqueeze {i}"] if x.ndim < 3 else []
    if x.ndim < 2 and x.numel() > 0:
        views.append(f"expand {i} 2")
    if x.numel() == 12 and x.is_contiguous():
        views.append(f"view {i} {rng.choice(['12', '2x6', '6x2', '4x3', '2x3x2'])}")
    if x.ndim == 2:
        views.append(f"t {i}")
    if x.ndim > 0 and min(x.shape) > 0:
        dim = rng.randrange(x.ndim)
        size = x.shape[dim]
        start = rng.randrange(size)
        views += [f"select {i} {dim} {start}", f"narrow {i} {dim} {start} {rng.randrange(1, size - start + 1)}"]
        if x.shape[0] > 1 and rng.random() < 0.3:
            views.append(f"split {i} {rng.randrange(1, x.shape[0])}")
    if rng.random() < 0.1:
        views.append(f"detach {i}")
    j = rng.choice(same)
    writes = [f"mul_ {i} {k}", f"add_ {i} {k}", f"muls_ {i} {j}", f"adds_ {i} {j}", f"copy_ {i} {j}", f"zero_ {i}",
              f"fill_ {i} {k}", f"relu_ {i}", f"square_ {i}"]
    is_part = x._is_view() and not x._base.is_leaf
    kind = rng.choice([steps, views or steps, views or steps] + ([writes] * 5 if is_part else [[]]) + [views or steps])
    kind = kind or (writes if rng.random() < 0.3 else views or steps)
    return ("!" if rng.random() < 0.07 else "") + rng.choice(kind)


def program(rng):
    tensors, steps = leaves(), [rng.choice(["times 0 2", "copy 0", "mul 0 1"])]
    step(tensors, steps[0])
    for _ in range(rng.randrange(3, 11)):
        # Most steps that fail at once are tried again, so that programs become long.
        for attempt in range(3):
            one = candidates(tensors, rng)
            before = [t._version for t in tensors]
            try:
                step(tensors, one)
            except RuntimeError:
                if attempt < 2 and [t._version for t in tensors] == before:
                    continue
                return steps + [one]
            steps.append(one)
            break
    return steps


rng = random.Random(58)
for _ in range(2000):
    steps = program(rng)
    print("; ".join(steps) + " => " + outcomes(steps))
