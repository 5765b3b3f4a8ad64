"""`torch.autograd.graph`: hooks for the tensors that a graph keeps."""

import _torch


class saved_tensors_hooks:
    def __init__(self, pack_hook, unpack_hook):
        self._hooks, self._guards = (pack_hook, unpack_hook), []

    def __enter__(self):
        self._guards.append(_torch.saved_tensors_hooks(*self._hooks))

    def __exit__(self, *error):
        self._guards.pop().end()
