"""`torch.amp`: 16 bits where that is accurate enough."""

import _torch

from .._missing import module_getattr
from .grad_scaler import GradScaler


class autocast:
    """A region that chooses the type of each operation. Also a decorator."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in ("cuda", "cpu"):
            _torch.device(device_type)  # Refuses a name that is not PyTorch's.
        self._args = (device_type, dtype, bool(enabled), cache_enabled)
        self._guards = []

    def __enter__(self):
        self._guards.append(_torch.autocast(*self._args))
        return self

    def __exit__(self, *error):
        self._guards.pop().end()
        return False

    def __call__(self, function):
        import functools

        @functools.wraps(function)
        def scoped(*args, **kwargs):
            with autocast(*self._args):
                return function(*args, **kwargs)

        return scoped


def is_autocast_available(device_type):
    return device_type in ("cpu", "cuda")


__getattr__ = module_getattr("torch.amp", globals())
