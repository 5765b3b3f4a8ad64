"""`torch.functional`: functions that `torch` has as well."""

from ._functions import einsum
from ._missing import module_getattr
from .nn import functional as F

__getattr__ = module_getattr("torch.functional", globals())
