"""A stand-in for torchvision: its data sets have the course's own pictures, and its transforms work on them."""

from . import datasets, transforms


def __getattr__(name):
    raise AttributeError(f"torchvision has no `{name}` here; `datasets` and `transforms` exist")
