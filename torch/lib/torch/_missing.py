"""Names that PyTorch has and this course does not."""

from . import _names


def missing(where, name, here=()):
    """The text of an AttributeError, for a name that is not here."""
    label = "torch.Tensor" if where == "Tensor" else where
    known = _names.NAMES.get(where, "")
    if f" {name} " in known.replace("\n", " "):
        text = f"{label} has no `{name}` here: PyTorch has it, this course does not"
    elif where == "Tensor":
        text = f"'Tensor' object has no attribute '{name}'"
    else:
        text = f"module '{label}' has no attribute '{name}'"
    near = [other for other in here if not other.startswith("_") and _are_near(name, other)]
    if near:
        text += f"; {', '.join(f'`{other}`' for other in sorted(near)[:4])} exist{'s' if len(near) == 1 else ''}"
    return text


def _are_near(name, other):
    a, b = name.lower().strip("_"), other.lower().strip("_")
    return len(b) > 2 and (a.startswith(b) or b.startswith(a) or a.endswith(b))


def module_getattr(where, namespace):
    """The `__getattr__` of a module."""

    def __getattr__(name):
        raise AttributeError(missing(where, name, list(namespace)))

    return __getattr__
