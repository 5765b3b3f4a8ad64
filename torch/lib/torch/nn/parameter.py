"""`torch.nn.Parameter`: a learned tensor."""

from _torch import Tensor, empty


class Parameter(Tensor):
    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter data must be a Tensor, not {type(data).__name__}")
        leaf = data.detach()
        if requires_grad and not leaf.is_floating_point():
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        leaf.requires_grad_(requires_grad)
        return Tensor.__new__(cls, leaf)

    def __init__(self, data=None, requires_grad=True):
        pass

    def __repr__(self):
        return "Parameter containing:\n" + Tensor.__repr__(self)

    def __str__(self):
        return self.__repr__()


Parameter.__module__ = "torch.nn.parameter"


class Buffer(Tensor):
    """A tensor that becomes a buffer when it is assigned to an attribute of a module."""

    def __new__(cls, data=None, *, persistent=True):
        buffer = Tensor.__new__(cls, empty(0) if data is None else data.detach())
        buffer.persistent = persistent
        return buffer

    def __init__(self, data=None, *, persistent=True):
        pass
