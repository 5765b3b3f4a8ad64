"""`torch.nn.parallel`: one model on several GPUs."""

import _torch
from _torch import cat

from ..._missing import module_getattr
from ..module import Module
from .distributed import DistributedDataParallel


def scatter(inputs, target_gpus, dim=0):
    if isinstance(inputs, _torch.Tensor):
        return tuple(part.to(f"cuda:{gpu}") for part, gpu in zip(inputs.chunk(len(target_gpus), dim), target_gpus))
    raise AttributeError("scatter of anything but a tensor is not here: PyTorch has it, this course does not")


class DataParallel(Module):
    """Splits a batch among GPUs. On one GPU or none it only calls the module."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        count = _torch_cuda().device_count()
        self.module, self.dim = module, dim
        self.device_ids = list(range(count)) if device_ids is None else list(device_ids)
        if len(self.device_ids) == 1:
            module.to(f"cuda:{self.device_ids[0]}")
        self.output_device = output_device if output_device is not None else (self.device_ids or [None])[0]

    def forward(self, *inputs, **kwargs):
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        first = f"cuda:{self.device_ids[0]}"
        for tensor in (*self.module.parameters(), *self.module.buffers()):
            if str(tensor.device) != first:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {first} (device_ids[0]) but found one of them on "
                    f"device: {tensor.device}"
                )
        if len(self.device_ids) == 1:
            return self.module(*(value.to(first) if isinstance(value, _torch.Tensor) else value for value in inputs), **kwargs)
        return self._on_all(inputs, kwargs)

    def _on_all(self, inputs, kwargs):
        """One part of the batch per GPU, each with copies of the parameters, whose gradients flow back."""
        from torch.func import functional_call

        if any(isinstance(value, _torch.Tensor) for value in kwargs.values()):
            raise AttributeError(
                "DataParallel of tensors by keyword is not here: PyTorch has it, this course does not; pass them by position"
            )
        parts = [scatter(value, self.device_ids, self.dim) for value in inputs]
        outputs = []
        for gpu, part in zip(self.device_ids, zip(*parts)):
            place = f"cuda:{gpu}"
            tensors = dict([*self.module.named_parameters(), *self.module.named_buffers()])
            copies = {name: tensor.to(place) for name, tensor in tensors.items()}
            outputs.append(functional_call(self.module, copies, part, kwargs))
        return cat([output.to(f"cuda:{self.output_device}") for output in outputs], self.dim)


def _torch_cuda():
    from torch import cuda

    return cuda


__getattr__ = module_getattr("torch.nn.parallel", globals())
