"""Writes random programs of PyTorch: python random_programs.py FOLDER FIRST COUNT. Each prints every result it computes.

`compare_random.py` runs them with PyTorch on the CPU and here.
"""

import random
import sys
from pathlib import Path

UNARY = """abs neg exp log sqrt rsqrt square sin cos tan tanh sigmoid relu sign floor ceil round reciprocal log1p expm1 erf log2 log10
sinh cosh atan asin acos exp2 trunc frac isnan isfinite""".split()
BINARY = ["+", "-", "*", "/", "**", "//", "%"]
COMPARE = ["<", "<=", ">", ">=", "==", "!="]
REDUCE = "sum mean max min prod var std amax amin argmax argmin any all norm median logsumexp".split()
ALONG = "softmax log_softmax cumsum cumprod sort argsort".split()
ACTIVATIONS = """relu gelu silu elu selu celu leaky_relu softplus hardtanh relu6 hardsigmoid hardswish mish softsign tanhshrink
softshrink hardshrink logsigmoid""".split()
LOSSES = "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits soft_margin_loss".split()
SHAPES = [(), (1,), (3,), (4,), (2, 3), (3, 1), (1, 4), (2, 1, 3), (2, 3, 4)]


class Program:
    def __init__(self, seed):
        self.random, self.count = random.Random(seed), 0
        self.lines = ["import torch", "import torch.nn as nn", "import torch.nn.functional as F", f"torch.manual_seed({seed})"]
        self.tensors = []  # (name, kind): float, with a gradient, int or bool

    def text(self):
        for _ in range(3):
            self.create()
        steps = [self.create, self.unary, self.unary, self.binary, self.binary, self.binary, self.reduce, self.along, self.shape]
        steps += [self.index, self.in_place, self.activation, self.loss, self.compare, self.layer, self.backward, self.matmul]
        for _ in range(self.random.randint(8, 16)):
            self.random.choice(steps)()
        return "\n".join(self.lines) + "\n"

    def name(self):
        self.count += 1
        return f"x{self.count}"

    def pick(self, *kinds):
        found = [name for name, kind in self.tensors if not kinds or kind in kinds]
        return self.random.choice(found) if found else None

    def number(self):
        return self.random.choice(["2", "-1", "0.5", "3", "-2.5", "1e-3", "10"])

    def result(self, expression, kind="float"):
        """A line that may fail: both interpreters must print the same error."""
        name = self.name()
        self.lines += ["try:", f"    {name} = {expression}", f"    print('{name}', {name})"]
        self.lines += ["except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:"]
        self.lines += ["    if 'this course' in str(error):", "        raise"]
        self.lines += [f"    {name} = torch.ones(2, 3)", f"    print('{name}', type(error).__name__)"]
        self.tensors.append((name, kind))

    def create(self):
        shape = self.random.choice(SHAPES)
        size = ", ".join(map(str, shape))
        name, kind = self.name(), self.random.choice(["float", "float", "grad", "int", "bool"])
        maker = {
            "float": f"torch.randn({size or '()'})",
            "grad": f"torch.rand({size or '()'}, requires_grad=True)",
            "int": f"torch.randint(-3, 6, ({size}{',' if len(shape) == 1 else ''}))",
            "bool": f"torch.rand({size or '()'}) > 0.5",
        }[kind]
        self.lines += [f"{name} = {maker}", f"print('{name}', {name})"]
        self.tensors.append((name, kind))

    def unary(self):
        self.result(f"{self.pick()}.{self.random.choice(UNARY)}()")

    def binary(self):
        a, b = self.pick(), self.random.choice([self.pick(), self.number()])
        if self.random.random() < 0.2:
            a, b = b, a
        self.result(f"{a} {self.random.choice(BINARY)} {b}")

    def compare(self):
        self.result(f"{self.pick()} {self.random.choice(COMPARE)} {self.random.choice([self.pick(), self.number()])}", "bool")

    def reduce(self):
        how, x = self.random.choice(REDUCE), self.pick()
        if how == "logsumexp" or self.random.random() < 0.5:
            keep = self.random.choice(["", ", keepdim=True"])
            self.result(f"{x}.{how}({self.random.choice(['0', '-1', '1'])}{keep})", "other" if how in ("max", "min", "median") else "float")
        else:
            self.result(f"{x}.{how}()")

    def along(self):
        how = self.random.choice(ALONG)
        dim = self.random.choice(["0", "-1", "1"])
        self.result(f"{self.pick('float', 'grad', 'int')}.{how}({dim})", "other" if how == "sort" else "float")

    def shape(self):
        x = self.pick()
        expression = self.random.choice([
            f"{x}.t()", f"{x}.reshape(-1)", f"{x}.unsqueeze(0)", f"{x}.squeeze()", f"{x}.flatten()", f"{x}.transpose(0, -1)",
            f"{x}.flip(0)", f"{x}.roll(1)", f"torch.cat([{x}, {x}])", f"torch.stack([{x}, {x}])", f"{x}.repeat(2, 1)",
            f"F.pad({x}, (1, 2))", f"{x}.tril()", f"{x}.diag()", f"{x}.expand(2, -1)", f"{x}.float()", f"{x}.clone()",
        ])
        self.result(expression)

    def index(self):
        x = self.pick()
        self.result(self.random.choice([f"{x}[0]", f"{x}[..., -1]", f"{x}[:1]", f"{x}[{x} > 0]", f"{x}[None]", f"{x}[[0, 0]]"]))

    def in_place(self):
        x = self.pick("float")
        how = self.random.choice([f"add_({self.number()})", f"mul_({self.pick()})", "clamp_(-1, 1)", "zero_()", "exp_()", "neg_()"])
        if x is not None:
            self.result(f"{x}.{how}")

    def activation(self):
        self.result(f"F.{self.random.choice(ACTIVATIONS)}({self.pick()})")

    def loss(self):
        reduction = self.random.choice(["", ", reduction='sum'", ", reduction='none'"])
        x = self.pick("float", "grad") or "torch.randn(3)"
        self.result(f"F.{self.random.choice(LOSSES)}({x}, torch.rand({x}.shape){reduction})")

    def matmul(self):
        a, b = self.pick("float", "grad"), self.pick("float", "grad")
        if a and b:
            self.result(self.random.choice([f"{a} @ {b}", f"torch.einsum('ij,kj->ik', {a}, {b})", f"{a}.matmul({b}.transpose(-1, 0))"]))

    def layer(self):
        x = self.pick("float", "grad") or "torch.randn(2, 3)"
        layer = self.random.choice([
            "nn.Linear(3, 2)", "nn.LayerNorm(3)", "nn.RNN(3, 2)", "nn.GRU(3, 2, batch_first=True)", "nn.LSTM(3, 2)", "nn.GroupNorm(1, 3)",
            "nn.BatchNorm1d(3)", "nn.Dropout(0.3)", "nn.Conv1d(2, 2, 2)", "nn.PReLU()", "nn.Dropout1d(0.5)", "nn.GRUCell(3, 2)",
        ])
        self.result(f"{layer}({x})", "other")

    def backward(self):
        leaf, x = self.pick("grad"), self.pick("float")
        if leaf is None or x is None:
            return
        self.lines += ["try:", f"    {x}.sum().backward(retain_graph=True)", f"    print('grad', {leaf}.grad)"]
        self.lines += ["except RuntimeError as error:", "    if 'this course' in str(error):", "        raise"]
        self.lines += ["    print('backward', type(error).__name__)"]


if __name__ == "__main__":
    folder, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(first, first + count):
        (folder / f"{seed}.py").write_text(Program(seed).text())
