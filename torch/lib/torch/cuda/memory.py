"""`torch.cuda.memory`: the functions of `torch.cuda` that are about memory."""


def __getattr__(name):
    from torch import cuda

    return getattr(cuda, name)
