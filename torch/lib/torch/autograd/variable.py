"""`torch.autograd.Variable`: an old name for a tensor that gradients go to."""

import warnings

from _torch import Tensor, empty


class _VariableMeta(type):
    def __instancecheck__(cls, object):
        return isinstance(object, Tensor)


class Variable(metaclass=_VariableMeta):
    def __new__(cls, data=None, requires_grad=False, volatile=None):
        if volatile is not None:
            warnings.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", stacklevel=2)
        if data is None:
            return empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
