"""`socket` is not here: ranks of a simulated machine need no network."""


def __getattr__(name):
    raise AttributeError(f"socket has no `{name}` here: a program of this course has no network")
