"""The activations of `torch.nn.functional` that are computed from other operations."""

import warnings

import _torch
from _torch import where

from .._elementwise import FUNCTIONS, _log1p
from .._operation import composed, expect_floats, kind_of, operation

_expm1 = FUNCTIONS["expm1"]


def _activation(name, forward, backward, x, inplace, kernel=""):
    """In place, the gradient needs the old values: it gets a copy."""
    if kernel:
        expect_floats(kernel, x)
    y = operation(name, forward, backward, x.clone() if inplace else x)
    return x.copy_(y) if inplace else y


def _elu(node, x, inplace, alpha, scale=1.0, inside=1.0):
    return _activation(
        node,
        lambda x: where(x <= 0, _expm1(x * inside) * (alpha * scale), x * scale),
        lambda grad, y, x: where(x <= 0, grad * inside * (alpha * scale) * (x * inside).exp(), grad * scale),
        x,
        inplace,
        "elu_cpu",
    )


def elu(input, alpha=1.0, inplace=False):
    return _elu("EluBackward0", input, inplace, alpha)


def selu(input, inplace=False):
    return _elu("EluBackward0", input, inplace, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


def celu(input, alpha=1.0, inplace=False):
    return _elu("CeluBackward0", input, inplace, alpha, inside=1.0 / alpha)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if input.dtype == _torch.bool:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if not input.is_floating_point():
        min_val, max_val = int(min_val), int(max_val)
    return _activation(
        "HardtanhBackward0",
        lambda x: x.clamp(min_val, max_val),
        lambda grad, y, x: where((x <= min_val) | (x >= max_val), 0.0, grad),
        input,
        inplace,
    )


def relu6(input, inplace=False):
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid(input, inplace=False):
    return _activation(
        "HardsigmoidBackward0",
        lambda x: (x + 3).clamp(0, 6) / 6,
        lambda grad, y, x: where((x > -3) & (x < 3), grad * (1.0 / 6.0), 0.0),
        input,
        inplace,
        "hardsigmoid_cpu",
    )


def hardswish(input, inplace=False):
    return _activation(
        "HardswishBackward0",
        lambda x: x * (x + 3).clamp(0, 6) / 6,
        lambda grad, y, x: where(x <= -3, 0.0, where(x < 3, grad * (x / 3 + 0.5), grad)),
        input,
        inplace,
        "hardswish_cpu",
    )


def mish(input, inplace=False):
    def inner(x):
        return _log1p(x.exp().to(_torch.float64)).to(x.dtype).tanh()

    def backward(grad, y, x):
        t = inner(x)
        return grad * (t + x * x.sigmoid() * (1 - t * t))

    return _activation("MishBackward0", lambda x: x * inner(x), backward, input, inplace, "mish_cpu")


def softsign(input):
    return input / (input.abs() + 1)


def tanhshrink(input):
    return input - input.tanh()


def softshrink(input, lambd=0.5):
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd:g}.")
    expect_floats("softshrink_check", input)
    return operation(
        "SoftshrinkBackward0",
        lambda x: where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x * 0)),
        lambda grad, y, x: where((x >= -lambd) & (x <= lambd), 0.0, grad),
        input,
    )


def hardshrink(input, lambd=0.5):
    expect_floats("hardshrink_cpu", input)
    return operation(
        "HardshrinkBackward0",
        lambda x: where((x >= -lambd) & (x <= lambd), 0.0, x),
        lambda grad, y, x: where((x >= -lambd) & (x <= lambd), 0.0, grad),
        input,
    )


def threshold(input, threshold, value, inplace=False):
    if not input.is_floating_point():
        expect_floats("threshold_cpu", input if input.dtype == _torch.bool else input.float())
        return where(input <= threshold, int(value), input)
    return _activation(
        "ThresholdBackward0",
        lambda x: where(x <= threshold, float(value), x),
        lambda grad, y, x: where(x <= threshold, 0.0, grad),
        input,
        inplace,
    )


def glu(input, dim=-1):
    if input.size(dim) % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % input.dim()} is size {input.size(dim)}")

    expect_floats("glu_cpu", input)

    def gated(x):
        value, gate = x.chunk(2, dim)
        return value * gate.sigmoid()

    return composed("GluBackward0", gated, input)


def prelu(input, weight):
    if not isinstance(input, _torch.Tensor):
        raise TypeError(f"prelu(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    if input.dtype != weight.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {kind_of(input)} and {kind_of(weight)}")
    if input.dim() == 0:
        weight = weight.view(())
    elif weight.numel() > 1 and input.dim() > 1:
        sizes = [1] * input.dim()
        sizes[1] = weight.numel()
        weight = weight.view(sizes)
    if weight.requires_grad:
        return composed("PreluKernelBackward0", lambda x, w: where(x > 0, x, w * x), input, weight)
    return operation(
        "PreluKernelBackward0", lambda x: where(x > 0, x, weight * x), lambda grad, y, x: where(x > 0, grad, weight * grad), input
    )


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    return (-input).softmax(guessed_dim("softmin", dim, input), dtype=dtype)


def guessed_dim(name, dim, input):
    """The dimension that PyTorch chooses where none is given, with its warning."""
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.", stacklevel=3
    )
    return 0 if input.dim() in (0, 1, 3) else 1


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    noise = -_torch.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    return _torch.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft
