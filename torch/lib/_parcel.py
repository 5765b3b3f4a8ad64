"""Objects on their way to another process. `pack` takes an object apart, as pickle does, and `unpack` rebuilds it."""

import sys


class PicklingError(Exception):
    """An object cannot be sent."""


PicklingError.__module__ = "_pickle"

_SIMPLE = (type(None), bool, float, str, bytes)


def pack(obj, for_process=True):
    """`for_process`: a tensor on the CPU is shared, as `torch.multiprocessing` does. Otherwise it is copied."""
    return _Packer(for_process).pack(obj)


class _Packer:
    def __init__(self, for_process):
        self._for_process, self._numbers, self._kept = for_process, {}, []

    def pack(self, obj):
        kind = type(obj)
        if kind in _SIMPLE:
            return obj
        if kind is int:
            return obj if -(2**63) <= obj < 2**63 else ("int", str(obj))
        if id(obj) in self._numbers:
            return ("ref", self._numbers[id(obj)])
        number = self._numbers[id(obj)] = len(self._numbers)
        self._kept.append(obj)  # so that no other object gets its id
        if kind in (list, tuple, set, frozenset):
            return (kind.__name__, number, *map(self.pack, obj))
        if kind is dict:
            return ("dict", number, *(self.pack(part) for pair in obj.items() for part in pair))
        return (*self._of_class(obj, number),)

    def _of_class(self, obj, number):
        import torch

        if isinstance(obj, torch.Tensor):
            return self._tensor(obj, number)
        if isinstance(obj, torch.device):
            return "device", number, str(obj)
        if isinstance(obj, torch.dtype):
            return "dtype", number, str(obj)
        if isinstance(obj, type) or type(obj).__name__ in ("function", "builtin_function_or_method"):
            return "global", number, *_name_of(obj)
        if type(obj).__name__ == "method":
            return "method", number, self.pack(obj.__self__), obj.__func__.__name__
        if type(obj) is type(sys):
            raise TypeError("cannot pickle 'module' object")
        make, args, state, items, pairs, *_ = *obj.__reduce_ex__(2), None, None, None
        return (
            "object", number, self.pack(make), self.pack(tuple(args)), self.pack(state), self.pack(list(items or ())),
            self.pack(list(pairs or ())),
        )

    def _tensor(self, tensor, number):
        if self._for_process:
            if tensor.requires_grad and not tensor.is_leaf:
                raise RuntimeError(
                    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
                    "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing "
                    "(e.g., putting it on the queue)."
                )
            if tensor.is_cuda:
                raise NotImplementedError(
                    "a tensor on a GPU stays in its process here: PyTorch sends it to others, this course does not; send `x.cpu()`"
                )
        data = tensor.detach()
        data = data if self._for_process else data.cpu().clone()
        kind = type(tensor)
        return "tensor", number, kind.__module__, kind.__qualname__, data, str(tensor.device), tensor.requires_grad


def _name_of(obj):
    """The module and the name of a function or a class, under which the other process finds it."""
    import torch

    name, module = getattr(obj, "__qualname__", obj.__name__), getattr(obj, "__module__", None)
    if "<locals>" in name:
        raise AttributeError(f"Can't pickle local object '{name}'")
    for place in (module, "torch", "torch.nn.functional"):
        try:
            if place and _find(place, name) is obj:
                return place, name
        except (AttributeError, ImportError, KeyError):
            pass
    raise PicklingError(f"Can't pickle {obj!r}: attribute lookup {name} on {module} failed")


def _find(module, name):
    if module not in sys.modules:
        __import__(module)
    found = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part)
    return found


def unpack(tree):
    return _unpack(tree, {})


def _unpack(tree, known):
    if type(tree) is not tuple:
        return tree
    tag, number, *parts = tree
    if tag == "int":
        return int(number)
    if tag == "ref":
        return known[number]
    if tag == "list":
        known[number] = items = []
        items.extend(_unpack(part, known) for part in parts)
        return items
    if tag == "dict":
        known[number] = items = {}
        for position in range(0, len(parts), 2):
            items[_unpack(parts[position], known)] = _unpack(parts[position + 1], known)
        return items
    if tag == "object":
        return _unpack_object(number, parts, known)
    known[number] = obj = _unpack_whole(tag, parts, known)
    return obj


def _unpack_whole(tag, parts, known):
    import torch

    if tag in ("tuple", "set", "frozenset"):
        return {"tuple": tuple, "set": set, "frozenset": frozenset}[tag](_unpack(part, known) for part in parts)
    if tag == "tensor":
        module, name, data, device, requires_grad = parts
        kind, data = _find(module, name), data.to(device)
        tensor = data if kind is torch.Tensor else torch.Tensor.__new__(kind, data)
        return tensor.requires_grad_(requires_grad) if requires_grad else tensor
    if tag == "device":
        return torch.device(parts[0])
    if tag == "dtype":
        return getattr(torch, parts[0].removeprefix("torch."))
    if tag == "method":
        return getattr(_unpack(parts[0], known), parts[1])
    return _global(*parts)


def _global(module, name):
    try:
        return _find(module, name)
    except AttributeError:
        raise AttributeError(f"Can't get attribute '{name}' on {sys.modules[module]!r}") from None


def _unpack_object(number, parts, known):
    make, args, state, items, pairs = parts
    obj = known[number] = _unpack(make, known)(*_unpack(args, known))
    state = _unpack(state, known)
    if state is not None:
        if hasattr(obj, "__setstate__"):
            obj.__setstate__(state)
        else:
            attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
            obj.__dict__.update(attributes or {})
            for name, value in (slots or {}).items():
                setattr(obj, name, value)
    for item in _unpack(items, known):
        obj.append(item)
    for key, value in _unpack(pairs, known):
        obj[key] = value
    return obj
