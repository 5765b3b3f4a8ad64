"""`torch.cuda.amp`: older names of `torch.amp`, which warn."""

import warnings


def _warn(old, new):
    warnings.warn(f"`torch.cuda.amp.{old}` is deprecated. Please use `{new}` instead.", FutureWarning, stacklevel=3)


def autocast(enabled=True, dtype=None, cache_enabled=True):
    from torch import amp, float16

    _warn("autocast(args...)", "torch.amp.autocast('cuda', args...)")
    return amp.autocast("cuda", dtype or float16, enabled, cache_enabled)


def GradScaler(*args, **kwargs):
    from torch import amp

    _warn("GradScaler(args...)", "torch.amp.GradScaler('cuda', args...)")
    return amp.GradScaler("cuda", *args, **kwargs)
