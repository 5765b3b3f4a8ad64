"""`annotationlib` of this course: what `dataclasses` calls. Annotations are values, not source."""

import enum


class Format(enum.IntEnum):
    VALUE = 1
    VALUE_WITH_FAKE_GLOBALS = 2
    FORWARDREF = 3
    STRING = 4


class ForwardRef:
    def __init__(self, arg, **of):
        self.__forward_arg__ = arg

    def __repr__(self):
        return f"ForwardRef({self.__forward_arg__!r})"


def get_annotations(obj, *, globals=None, locals=None, eval_str=False, format=Format.VALUE):
    return dict(getattr(obj, "__annotations__", None) or {})


def type_repr(value):
    if isinstance(value, type):
        return value.__qualname__ if value.__module__ == "builtins" else f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def __getattr__(name):
    raise AttributeError(f"annotationlib has no `{name}` here; Format, ForwardRef, get_annotations and type_repr exist")
