"""`torch.backends`: settings of products and convolutions."""

import sys

import _torch

from .._missing import module_getattr
from . import cuda, cudnn

mps = type(sys)("torch.backends.mps")
mps.is_available = lambda: False
mps.is_built = lambda: False
sys.modules["torch.backends.mps"] = mps

__getattr__ = module_getattr("torch.backends", globals())
