"""Operations that are computed from others. Each has one node in the graph, with PyTorch's name."""

import _torch
from _torch import Tensor


def _records(inputs):
    return _torch.is_grad_enabled() and any(x.requires_grad for x in inputs)


def operation(name, forward, backward, *inputs):
    """`forward(*inputs)`, with a node of this name. `backward(grad, result, *inputs)` returns the inputs' gradients."""
    guard = _torch.set_grad_enabled(False)
    try:
        result = forward(*inputs)
    finally:
        guard.end()
    if not _records(inputs):
        return result
    saved = (*(x.detach() for x in inputs), result.detach())
    versions = [x._version for x in saved]
    nodes = [*(x.grad_fn.name() if x.grad_fn is not None else "" for x in inputs), name]

    def node(grad):
        for x, version, of in zip(saved, versions, nodes):
            if x._version != version:
                raise RuntimeError(_changed(x, version, of))
        grads = backward(grad, saved[-1], *saved[:-1])
        return grads if isinstance(grads, (tuple, list)) else (grads,)

    return _torch.record(name, inputs, result, node)


def _changed(x, version, node):
    origin = f", which is output 0 of {node}," if node else ""
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{x.type()} {list(x.shape)}]{origin} is at version {x._version}; expected version {version} instead. Hint: enable anomaly "
        "detection to find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def composed(name, compute, *inputs):
    """`compute(*inputs)`, with a node of this name. Its gradients are those of the operations inside."""
    if not _records(inputs):
        return compute(*inputs)
    inside = [x.detach().requires_grad_(x.requires_grad) for x in inputs]
    result = compute(*inside)
    needed = tuple(x for x in inside if x.requires_grad)

    def node(grad):
        grads = iter(_torch.grad(result, needed, grad, True, True))
        return [next(grads) if x.requires_grad else None for x in inside]

    return _torch.record(name, inputs, result.detach(), node)


def with_node(name, result):
    """The same result with a node of this name."""
    return _torch.record(name, (result,), result.detach(), lambda grad: [grad]) if result.requires_grad else result


def fp32(*tensors):
    """The operands of an operation that autocast computes in float32."""
    first = tensors[0]
    if not _torch.is_autocast_enabled(first.device.type):
        return tensors
    return tuple(x.float() if isinstance(x, Tensor) and x.is_floating_point() else x for x in tensors)


def expect_floats(name, x):
    """PyTorch's error of a kernel that takes no integers."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name.split('_')[0]}(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}")
    if not x.is_floating_point():
        raise NotImplementedError(f'"{name}" not implemented for \'{kind_of(x)}\'')


def kind_of(x):
    """`Long`, for a tensor of int64."""
    return x.type().split(".")[-1].removesuffix("Tensor")
