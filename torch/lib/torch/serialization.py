"""`torch.save` and `torch.load`, in PyTorch's format."""

import warnings

import _serialize
from _torch import device as Device

from ._missing import module_getattr


_MODULE = "a whole module of class "


class _Storage:
    """Stands for the storages that PyTorch passes to a `map_location` function. Here the function may only return them."""

    def __getattr__(self, name):
        _refuse_to_move()


def _refuse_to_move():
    raise AttributeError(
        "torch.load with a function that moves storages is not here: PyTorch has it, this course does not; "
        "map_location='cuda:0' exists"
    )


class UnpicklingError(Exception):
    """A file holds more than tensors and plain data."""


UnpicklingError.__module__ = "_pickle"


def save(obj, f, pickle_module=None, pickle_protocol=2, _use_new_zipfile_serialization=True):
    from .nn import Module

    if not _use_new_zipfile_serialization:
        raise AttributeError("torch.save in the format before PyTorch 1.6 is not here: PyTorch has it, this course does not")
    if isinstance(obj, Module):
        warnings.warn(
            "torch.save of a whole module writes a file that cannot be loaded here, and that PyTorch refuses by default: "
            "save module.state_dict()",
            stacklevel=2,
        )
        kind = type(obj)
        data = f"{_MODULE}{kind.__module__}.{kind.__qualname__}".encode()
    else:
        data = _serialize.to_bytes(obj)
    if hasattr(f, "write"):
        f.write(data)
    else:
        import _host

        _host.write_file(str(f), data, False)


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None):
    if weights_only is False:
        raise AttributeError(
            "torch.load(weights_only=False) runs code from the file, and is not here: PyTorch has it, this course does not"
        )
    if hasattr(f, "read"):
        data = f.read()
    else:
        import _host

        data = _host.read_file(str(f))
    if data.startswith(_MODULE.encode()):
        kind = data.decode().removeprefix(_MODULE)
        raise UnpicklingError(
            "Weights only load failed. This file can still be loaded, to do so you have two options, do those steps only if you trust "
            "the source of the checkpoint. \n\t(1) In PyTorch 2.6, we changed the default value of the `weights_only` argument in "
            f"`torch.load` from `False` to `True`.\n\tUnsupported global: GLOBAL {kind} was not an allowed global by default."
        )
    if callable(map_location):
        # `lambda storage, location: storage` leaves everything on the CPU.
        storage = _Storage()
        if map_location(storage, "cpu") is not storage:
            _refuse_to_move()
        map_location = "cpu"
    if isinstance(map_location, dict):
        map_location = {str(key): str(value) for key, value in map_location.items()}
    elif map_location is not None:
        map_location = Device(map_location)
    try:
        return _serialize.from_bytes(data, map_location)
    except RuntimeError as error:
        if "Weights only load failed" in str(error) or "Unsupported global" in str(error):
            raise UnpicklingError(str(error)) from None
        raise


__getattr__ = module_getattr("torch.serialization", globals())
