"""`torch.backends.cudnn`: a module whose attributes are settings."""

import sys
from contextlib import contextmanager

import _torch

_NAMES = ("enabled", "benchmark", "deterministic", "allow_tf32", "benchmark_limit")


class _Settings(type(sys)):
    def __getattr__(self, name):
        if name in _NAMES:
            return _torch.cudnn_flags()[_NAMES.index(name)]
        raise AttributeError(f"torch.backends.cudnn has no `{name}` here: PyTorch has it, this course does not")

    def __setattr__(self, name, value):
        if name in _NAMES:
            flags = list(_torch.cudnn_flags())
            flags[_NAMES.index(name)] = int(value) if name == "benchmark_limit" else bool(value)
            _torch.set_cudnn_flags(*flags)
        elif name.startswith("__"):
            super().__setattr__(name, value)
        else:
            raise AttributeError(f"torch.backends.cudnn has no `{name}` here: PyTorch has it, this course does not")


def is_available():
    return _torch.cudnn_version() is not None


def version():
    return _torch.cudnn_version()


@contextmanager
def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True):
    before = _torch.cudnn_flags()
    _torch.set_cudnn_flags(enabled, benchmark, deterministic, allow_tf32, benchmark_limit)
    try:
        yield
    finally:
        _torch.set_cudnn_flags(*before)


sys.modules[__name__].__class__ = _Settings
