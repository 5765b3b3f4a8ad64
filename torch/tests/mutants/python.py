import torch, math, random, contextlib, dataclasses, functools
@dataclasses.dataclass
class Options:
    lr: float = 0.1
    sizes: tuple = (2, 3)
@contextlib.contextmanager
def scope(name):
    print(name)
    try:
        yield [1, 2, 3]
    finally:
        print("end")
def numbers(count):
    for i in range(count):
        yield i * i
with scope("a") as items:
    total = functools.reduce(lambda a, b: a + b, (n for n in numbers(5) if n % 2 == 0), 0)
match Options():
    case Options(lr=lr, sizes=(a, b)):
        print(f"{lr:.3f} {a * b} {total!r:>5} {math.sqrt(total)}")
text = "".join(sorted(str(torch.tensor(items))))
assert len(text) > 3, "short"
try:
    raise ValueError(text) from KeyError(1)
except (ValueError, TypeError) as error:
    print(repr(error.__cause__), {**dict(a=1)}, [*items, *range(2)])
