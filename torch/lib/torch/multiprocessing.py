"""`torch.multiprocessing` is not here: ranks of a simulated machine are started with `torch.distributed`."""

from ._missing import module_getattr

__getattr__ = module_getattr("torch.multiprocessing", globals())
