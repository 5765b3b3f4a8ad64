"""`torch.nn.utils`: gradients of all parameters at once."""

import _torch
from _torch import Tensor, stack

from .._missing import module_getattr


def _grads(parameters):
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    tensors, norm_type = list(tensors), float(norm_type)
    if not tensors:
        return _torch.tensor(0.0)
    device = tensors[0].device
    total = stack([tensor.norm(norm_type).to(device) for tensor in tensors]).norm(norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To disable "
            "this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    guard = _torch.set_grad_enabled(False)
    try:
        grads = _grads(parameters)
        total = get_total_norm(grads, norm_type, error_if_nonfinite)
        factor = (float(max_norm) / (total + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(factor.to(grad.device))
        return total
    finally:
        guard.end()


def clip_grad_value_(parameters, clip_value, foreach=None):
    guard = _torch.set_grad_enabled(False)
    try:
        for grad in _grads(parameters):
            grad.clamp_(-float(clip_value), float(clip_value))
    finally:
        guard.end()


def parameters_to_vector(parameters):
    return _torch.cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec, parameters):
    start = 0
    for parameter in parameters:
        parameter.data = vec[start : start + parameter.numel()].view_as(parameter).data
        start += parameter.numel()


__getattr__ = module_getattr("torch.nn.utils", globals())
