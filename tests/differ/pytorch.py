# Runs the programs of `cargo run --release --bin differ` in PyTorch on the CPU: a JSON line in, a JSON line out.
#
# In: the expressions of a program, in which v0, v1, … are the tensors that were made so far. Out: of each what it made,
# or the first line of its error; then all values and gradients.
import json
import sys
import warnings
from math import inf, nan  # noqa: F401, the programs use them

import torch
import torch.nn.functional as F  # noqa: F401

warnings.simplefilter("ignore")
torch.set_num_threads(2)


def weights(x):
    """A gradient to start from: numbers that are exact in every type."""
    if x.numel() == 1:
        return None
    count = torch.arange(x.numel(), dtype=torch.float64)
    return (count.mul(37).add(11).remainder(61) / 32 - 0.9375).reshape(x.shape).to(x.dtype)


def name(dtype):
    return str(dtype).removeprefix("torch.")


def numbers(x):
    x = x.detach()
    if not x.is_floating_point():
        return " ".join(str(int(value)) for value in x.flatten().tolist())
    digits = "%.17g" if x.dtype == torch.float64 else "%.9g"
    return " ".join(digits % value for value in x.flatten().tolist())


def described(x, variables):
    memory = x.untyped_storage().data_ptr()
    same = [i for i, other in enumerate(variables) if other.untyped_storage().data_ptr() == memory]
    shares = same[0] if memory and same and x.numel() + variables[same[0]].numel() > 0 else None
    # As it is printed, without a namespace of C++.
    node = x.grad_fn.name().rsplit("::")[-1] if x.grad_fn else None
    return [name(x.dtype), list(x.shape), list(x.stride()), shares, x.requires_grad, node]


def gradient(x):
    try:
        grad = x.grad if x.is_leaf else None
    except RuntimeError:
        return None  # A view that PyTorch gave up, since its base was written to.
    return None if grad is None else [name(grad.dtype), list(grad.shape), numbers(grad)]


def answer(expressions):
    variables, steps = [], []
    for expression in expressions:
        try:
            result = eval(expression, globals(), {f"v{i}": x for i, x in enumerate(variables)})
            made = [] if result is None else [result] if isinstance(result, torch.Tensor) else list(result)
            steps.append([described(x, variables + made[:i]) for i, x in enumerate(made)])
            variables += made
        except Exception as error:
            steps.append(str(error).split("\n")[0])
    values, gradients = [numbers(x) for x in variables], [gradient(x) for x in variables]
    return {"steps": steps, "values": values, "gradients": gradients}


print(json.dumps(torch.__version__.split("+")[0]), flush=True)
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line)), separators=(",", ":")), flush=True)
