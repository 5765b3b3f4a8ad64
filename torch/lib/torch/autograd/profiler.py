"""`torch.autograd.profiler`: older names of `torch.profiler`."""


def __getattr__(name):
    from torch import profiler

    return getattr(profiler, name)
