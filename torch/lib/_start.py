"""Runs before every program: refuses modules that are not here, by name, and finds those beside the script."""

import sys

import _host

HERE = sorted(
    """__future__ abc argparse bisect collections contextlib copy dataclasses datetime enum functools gc heapq io itertools json
    keyword logging math numbers operator os pathlib pprint random re reprlib socket string struct subprocess sys
    tempfile textwrap time torch torchvision tqdm types typing warnings weakref""".split()
)


class Finder:
    """Finds modules beside the script, and names those that are not here."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("_"):
            return None
        top = name.split(".")[0]
        found = _host.module_source(name) if top not in HERE else None
        if found is not None:
            return _spec(name, *found)
        if top in HERE:
            return None
        raise ModuleNotFoundError(
            f"No module named '{name}' here. PyTorch's own modules are here, and of Python's: {', '.join(HERE)}.",
            name=name,
        )


class Loader:
    def __init__(self, source, path):
        self.source, self.path = source, path

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__file__ = self.path
        exec(compile(self.source, self.path, "exec"), module.__dict__)


def _spec(name, source, path, is_package):
    import _frozen_importlib

    return _frozen_importlib.ModuleSpec(name, Loader(source, path), origin=path, is_package=is_package)


sys.meta_path.append(Finder)

import _codecs


def _codec(name):
    """Encodings besides UTF-8."""
    if name in ("latin1", "latin_1", "iso_8859_1", "iso8859_1", "l1"):
        return _codecs.latin_1_encode, _codecs.latin_1_decode, None, None
    if name in ("ascii", "us_ascii"):
        return _codecs.ascii_encode, _codecs.ascii_decode, None, None


_codecs.register(_codec)

import builtins


class _Quitter:
    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"Use {self._name}() or Ctrl-D to leave the prompt."

    def __call__(self, code=None):
        raise SystemExit(code)


class _Help:
    def __repr__(self):
        return "help(x) prints the description of x. PyTorch's pages: https://docs.pytorch.org"

    def __call__(self, *objects):
        if not objects:
            print(repr(self))
        for obj in objects:
            name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None) or type(obj).__name__
            print(f"{name}: {getattr(obj, '__doc__', None) or 'there is no description here'}")


builtins.exit, builtins.quit, builtins.help = _Quitter("exit"), _Quitter("quit"), _Help()

import io

builtins.open = io.open
