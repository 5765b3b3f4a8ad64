"""The modules of Python that programs import most."""

from dataclasses import dataclass, field, asdict, replace
from typing import Optional


@dataclass(order=True)
class Config:
    lr: float = 1e-3
    sizes: list = field(default_factory=lambda: [1, 2])
    name: Optional[str] = None

    def scaled(self):
        return self.lr * 2


c = Config(0.1, name="x")
print(c, c == Config(0.1, name="x"), asdict(c), replace(c, lr=2.0).scaled(), Config(1) < Config(2))


@dataclass(frozen=True, slots=True)
class Point:
    x: int


try:
    Point(1).x = 3
except Exception as error:
    print(type(error).__name__, error)
try:
    Config(1, 2, 3, 4)
except TypeError as error:
    print(error)

import collections
import contextlib
import functools
import itertools
import json
import math
import re
import textwrap

import torch

print(collections.Counter("hello").most_common(2), collections.deque([1, 2, 3], maxlen=2), collections.defaultdict(int)["a"])
print(functools.reduce(lambda a, b: a * b, range(1, 6)), list(itertools.product("ab", [1, 2])), math.prod([2, 3]), math.isclose(1, 1))
print(json.dumps({"lr": 0.1, "sizes": [1, None, True]}), json.loads('{"a": [1.5, "x"]}'), re.findall(r"(\w)=(\d+)", "a=1 b=22"))
print(textwrap.dedent("    a\n    b"), f"{1234567.891:,.2f} {'x':>4} {0.5:.1%} {255:#x}", "%5.2f|%-4s|" % (3.14159, "ab"))


@contextlib.contextmanager
def scope(name):
    print("begin", name)
    yield name
    print("end")


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


with scope("a") as name, contextlib.suppress(KeyError):
    print(fib(50), {}["missing"])
match {"kind": "sgd", "lr": torch.tensor(0.1).item()}:
    case {"kind": "sgd", "lr": lr} if lr > 0:
        print(f"{lr:.3f}")
