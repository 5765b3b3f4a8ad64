"""`torch.nn.functional`"""

import _torch
from _torch import Tensor

from .._missing import module_getattr

for _name in dir(_torch):
    if _name.startswith("F_"):
        globals()[_name[2:]] = getattr(_torch, _name)
del _name


def relu_(input):
    return input.relu_()


def _dim(name, dim):
    if dim is None:
        raise TypeError(f"{name}() missing 1 required positional argument: 'dim'; PyTorch guesses it, which is deprecated")
    return dim


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    return input.softmax(_dim("softmax", dim), dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    return input.log_softmax(_dim("log_softmax", dim), dtype=dtype)


def normalize(input, p=2.0, dim=1, eps=1e-12):
    return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)


__getattr__ = module_getattr("torch.nn.functional", globals())
