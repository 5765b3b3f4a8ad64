"""`torch.utils.checkpoint`: recomputes activations instead of keeping them."""

import _torch

from .._missing import module_getattr


class _Recomputed:
    """The tensors that a function saves for its backward pass: they are numbered now, and computed again when one is needed."""

    def __init__(self, run, preserves_rng):
        self._run, self._count, self._kept = run, 0, {}
        self._state = _random_state() if preserves_rng else None

    def pack(self, tensor):
        self._count += 1
        return self._count - 1

    def unpack(self, number):
        if number not in self._kept:
            self._recompute()
        return self._kept.pop(number)

    def _recompute(self):
        kept = self._kept = {}

        def keep(tensor):
            kept[len(kept)] = tensor.detach()
            return tensor

        before = _random_state()
        _set_random_state(self._state)
        guards = [_torch.set_grad_enabled(True), _torch.saved_tensors_hooks(keep, lambda tensor: tensor)]
        try:
            self._run()
        finally:
            for guard in reversed(guards):
                guard.end()
            if self._state is not None:
                _set_random_state(before)
        if len(kept) != self._count:
            raise RuntimeError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {self._count}\nNumber of tensors saved during recomputation: {len(kept)}."
            )


def _random_state():
    from .. import cuda

    return _torch.get_rng_state(), cuda.get_rng_state() if cuda.is_available() and cuda.is_initialized() else None


def _set_random_state(state):
    from .. import cuda

    if state is not None:
        _torch.set_rng_state(state[0])
        if state[1] is not None:
            cuda.set_rng_state(state[1])


def checkpoint(function, *args, use_reentrant=None, preserve_rng_state=True, **kwargs):
    if use_reentrant is not False:
        raise AttributeError(
            "checkpoint with use_reentrant=True is not here: PyTorch has it, this course does not; `use_reentrant=False` exists"
        )
    recomputed = _Recomputed(lambda: function(*args, **kwargs), preserve_rng_state)
    guard = _torch.saved_tensors_hooks(recomputed.pack, recomputed.unpack)
    try:
        return function(*args, **kwargs)
    finally:
        guard.end()


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    functions = list(functions.children() if hasattr(functions, "children") else functions)

    def run(start, end):
        def segment(x):
            for function in functions[start:end]:
                x = function(x)
            return x

        return segment

    size, start = len(functions) // segments, 0
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(run(start, start + size), input, use_reentrant=use_reentrant, **kwargs)
    return run(size * (segments - 1), len(functions))(input)


__getattr__ = module_getattr("torch.utils.checkpoint", globals())
