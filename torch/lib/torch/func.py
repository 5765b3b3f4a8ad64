"""`torch.func`: modules as functions of their parameters."""

from ._missing import module_getattr


def functional_call(module, parameters_and_buffers, args=None, kwargs=None):
    """Calls a module with other tensors in place of its parameters and buffers."""
    if not isinstance(args, tuple):
        args = () if args is None else (args,)
    replaced = []
    try:
        for name, tensor in parameters_and_buffers.items():
            *path, last = name.split(".")
            owner = module.get_submodule(".".join(path))
            for store in (owner._parameters, owner._buffers):
                if last in store:
                    replaced.append((store, last, store[last]))
                    store[last] = tensor
                    break
        return module(*args, **(kwargs or {}))
    finally:
        for store, last, tensor in reversed(replaced):
            store[last] = tensor


__getattr__ = module_getattr("torch.func", globals())
