"""Activations and functions of each element: values, the names of their nodes, and gradients."""

import torch
import torch.nn as nn
import torch.nn.functional as F

x = torch.tensor([-6.5, -3.0, -1.0, -0.5, -1e-4, 0.0, 1e-4, 0.3, 0.5, 1.0, 2.5, 3.0, 7.0])


def show(name, function, x):
    leaf = x.clone().requires_grad_()
    y = function(leaf)
    print(name, y)
    y.square().sum().backward()
    print(leaf.grad)


for name in """elu selu celu relu6 hardtanh hardsigmoid hardswish mish softsign tanhshrink softshrink hardshrink logsigmoid""".split():
    show(name, getattr(F, name), x)
show("elu 0.5", lambda x: F.elu(x, 0.5), x)
show("celu 2", lambda x: F.celu(x, 2.0), x)
show("hardtanh", lambda x: F.hardtanh(x, -2, 0.4), x)
show("threshold", lambda x: F.threshold(x, 0.4, 20.0), x)
show("glu", lambda x: F.glu(x[:12].view(3, 4), 1), x)
show("softmin", lambda x: F.softmin(x, 0), x)
show("prelu", lambda x: F.prelu(x, torch.tensor([0.1])), x)
slopes = torch.tensor([0.1, 0.2], requires_grad=True)
show("prelu of channels", lambda x: F.prelu(x[:12].view(3, 2, 2), slopes), x)
print(slopes.grad)

small = torch.tensor([-0.9, -0.5, -1e-6, 0.0, 1e-6, 0.25, 0.5, 0.99])
for name in "tan asin acos atan sinh cosh asinh atanh log1p expm1 exp2 erf erfc trunc frac".split():
    show(name, getattr(torch, name), small)
    show(name, getattr(torch, name), x[6:] / 8 if name in ("asin", "acos", "atanh") else x[6:])
for name in "log2 log10 acosh".split():
    show(name, getattr(torch, name), 1 + x[6:])
print(torch.tensor([3]).log2(), torch.arange(3).tan(), torch.tensor([1.0, 2.0]).double().log1p())
print(torch.ones(2).tan_(), torch.tensor([1e-8, -1e-8]).log1p() * 1e8, torch.tensor([1e-8]).expm1() * 1e8, torch.erf(torch.tensor(1e-5)) * 1e5)

for module in (
    nn.ELU(), nn.ELU(0.5, inplace=True), nn.SELU(), nn.CELU(), nn.ReLU6(), nn.Hardtanh(), nn.Hardsigmoid(), nn.Hardswish(), nn.Mish(),
    nn.Softsign(), nn.Tanhshrink(), nn.Softshrink(), nn.Hardshrink(), nn.LogSigmoid(), nn.Threshold(0.1, 20), nn.PReLU(), nn.GLU(0),
    nn.Softmin(dim=0),
):
    print(module)
    print(module(x[:12].clone()))

a, b = torch.tensor([0.0, 2.0, 3.0], requires_grad=True), torch.tensor([2.0, 0.5, -1.0], requires_grad=True)
for power in (a**b, 2**b, a.pow(b), torch.pow(2.5, b), b**2, b.detach() ** torch.tensor(2)):
    print(power)
    if power.requires_grad:
        a.grad = b.grad = None
        power.sum().backward()
        print(a.grad, b.grad)
print(torch.tensor([2, 3]) ** torch.tensor([3, 2]), 2 ** torch.arange(4), 2 ** torch.tensor([0.5]), torch.tensor([1, 2]) ** 0.5)
