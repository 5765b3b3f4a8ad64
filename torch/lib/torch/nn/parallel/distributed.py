"""`DistributedDataParallel`: every rank trains a copy of the model on its part of each batch."""

from contextlib import contextmanager

import _distributed
import _torch

from ..module import Module


class DistributedDataParallel(Module):
    def __init__(
        self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True, process_group=None,
        bucket_cap_mb=None, find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False, static_graph=False,
    ):
        super().__init__()
        _distributed.rank()
        if gradient_as_bucket_view or static_graph or not init_sync:
            raise AttributeError(
                "DistributedDataParallel with gradient_as_bucket_view, static_graph or without init_sync is not here: PyTorch has "
                "it, this course does not"
            )
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        devices = {parameter.device for parameter in module.parameters()}
        if device_ids and {device.type for device in devices} == {"cpu"}:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU "
                f"modules or CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module parameters "
                f"{devices}."
            )
        self.module, self.dim, self.broadcast_buffers, self.process_group = module, dim, broadcast_buffers, process_group
        self.device_ids, self.find_unused_parameters = list(device_ids) if device_ids else None, find_unused_parameters
        names, tensors = _unzipped(module.named_parameters())
        buffer_names, buffers = _unzipped(module.named_buffers())
        self._averaging = _distributed.averaging(
            names, tensors, buffer_names, buffers, process_group, None if bucket_cap_mb is None else float(bucket_cap_mb),
            bool(broadcast_buffers), bool(find_unused_parameters),
        )
        self._buckets_at_first = self._averaging.buckets()

    def forward(self, *inputs, **kwargs):
        averages = self._averaging.before_forward(list(self.module.buffers()))
        if self.device_ids:
            inputs, kwargs = _moved(inputs, self.device_ids[0]), _moved(kwargs, self.device_ids[0])
        output = self.module(*inputs, **kwargs)
        self._averaging.after_forward(averages, list(_tensors_of(output)))
        return output

    @contextmanager
    def no_sync(self):
        before = self._averaging.set_sync(False)
        try:
            yield
        finally:
            self._averaging.set_sync(before)

    def _get_ddp_logging_data(self):
        buckets = self._averaging.buckets()
        rebuilt = buckets if buckets != self._buckets_at_first else []
        words = [", ".join(map(str, sizes)) for sizes in (self._buckets_at_first, rebuilt)]
        return {
            "rank": _distributed.rank(), "world_size": _distributed.world_size(), "bucket_sizes": words[0],
            "rebuilt_bucket_sizes": words[1], "has_rebuilt_buckets": int(bool(rebuilt)),
        }


DistributedDataParallel.__module__ = "torch.nn.parallel.distributed"


def _unzipped(pairs):
    pairs = list(pairs)
    return [name for name, _ in pairs], [tensor for _, tensor in pairs]


def _moved(value, device):
    if isinstance(value, _torch.Tensor):
        return value.to(_torch.device("cuda", device) if isinstance(device, int) else device)
    if isinstance(value, dict):
        return {key: _moved(item, device) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_moved(item, device) for item in value)
    return value


def _tensors_of(value):
    if isinstance(value, _torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors_of(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors_of(item)
