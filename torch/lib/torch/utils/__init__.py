"""`torch.utils`"""

from .._missing import module_getattr
from . import data

__getattr__ = module_getattr("torch.utils", globals())
