"""`torch.save` and `torch.load`, in PyTorch's format."""

from collections import OrderedDict

import _serialize
from _torch import device as Device

from ._missing import module_getattr


class UnpicklingError(Exception):
    """A file holds more than tensors and plain data."""


UnpicklingError.__module__ = "_pickle"


def save(obj, f, pickle_module=None, pickle_protocol=2, _use_new_zipfile_serialization=True):
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
    if callable(map_location):
        # `lambda storage, location: storage` leaves everything on the CPU.
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
