"""The few functions of `inspect` that Python's own modules call."""


def signature(callable):
    raise ValueError("signatures are not here")


def unwrap(function):
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def isclass(value):
    return isinstance(value, type)


def isfunction(value):
    return type(value).__name__ == "function"


def get_annotations(value, **options):
    return dict(getattr(value, "__annotations__", {}))
