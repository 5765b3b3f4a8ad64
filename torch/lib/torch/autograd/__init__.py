"""`torch.autograd`: gradients, and functions with a backward pass of their own."""

import _torch

from .._missing import module_getattr
from . import graph, profiler, variable
from .gradcheck import gradcheck
from .variable import Variable


class DeviceType:
    """The kind of device that an event of the profiler ran on."""

    CPU, CUDA = "DeviceType.CPU", "DeviceType.CUDA"


def _listed(tensors):
    return tuple(tensors) if isinstance(tensors, (list, tuple)) else (tensors,)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None):
    if inputs is not None:
        raise AttributeError("backward(inputs=…) is not here: PyTorch has it, this course does not; `torch.autograd.grad` exists")
    tensors = _listed(tensors)
    grads = (None,) * len(tensors) if grad_tensors is None else _listed(grad_tensors)
    for i, (tensor, grad) in enumerate(zip(tensors, grads)):
        tensor.backward(grad, retain_graph or i + 1 < len(tensors), create_graph)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=None, is_grads_batched=False):
    if create_graph or is_grads_batched:
        raise AttributeError("grad(create_graph=True) is not here: PyTorch has it, this course does not")
    outputs = _listed(outputs)
    if len(outputs) != 1:
        raise AttributeError("grad() of several outputs is not here: PyTorch has it, this course does not; add them up")
    given = None if grad_outputs is None else _listed(grad_outputs)[0]
    return _torch.grad(outputs[0], _listed(inputs), given, bool(retain_graph), bool(allow_unused))


class _Context:
    """`ctx` of a Function."""

    def __init__(self):
        self._saved, self.needs_input_grad = (), ()

    def save_for_backward(self, *tensors):
        self._saved = tensors

    @property
    def saved_tensors(self):
        return self._saved

    def mark_non_differentiable(self, *tensors):
        raise AttributeError("ctx.mark_non_differentiable is not here: PyTorch has it, this course does not")

    def set_materialize_grads(self, value):
        """Changes nothing: a Function has one result here, and its backward pass runs only with a gradient of it."""

    def mark_dirty(self, *tensors):
        raise AttributeError("ctx.mark_dirty is not here: PyTorch has it, this course does not")


class Function:
    """An operation with a forward and a backward pass of its own."""

    @staticmethod
    def forward(ctx, *args):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )

    @classmethod
    def apply(cls, *args):
        ctx = _Context()
        positions = [i for i, arg in enumerate(args) if isinstance(arg, _torch.Tensor)]
        ctx.needs_input_grad = tuple(isinstance(arg, _torch.Tensor) and arg.requires_grad for arg in args)
        guard = _torch.set_grad_enabled(False)
        try:
            if hasattr(cls, "setup_context"):
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args)
        finally:
            guard.end()
        if isinstance(output, tuple):
            if any(ctx.needs_input_grad):
                raise AttributeError("a Function with several results is not here: PyTorch has it, this course does not")
            return output

        def backward(grad):
            grads = cls.backward(ctx, grad)
            grads = grads if isinstance(grads, tuple) else (grads,)
            if len(grads) != len(args):
                raise RuntimeError(
                    f"function {cls.__name__}Backward returned an incorrect number of gradients (expected {len(args)}, got {len(grads)})"
                )
            return [grads[i] for i in positions]

        return _torch.record(f"{cls.__name__}Backward", tuple(args[i] for i in positions), output, backward)


__getattr__ = module_getattr("torch.autograd", globals())
