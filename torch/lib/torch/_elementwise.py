"""Functions of each element that `todevice` has no kernel for: they are computed in float64, then rounded."""

import math

import _torch
from _torch import float32, float64, where

from ._operation import expect_floats, operation


def _add(name, node, compute, derivative, in_place=True):
    """A function of `torch` and a method, from a function on float64 and PyTorch's formula of the gradient."""

    def forward(x):
        return compute(x.to(float64)).to(x.dtype if x.is_floating_point() else float32)

    def function(input):
        if name == "frac":
            expect_floats("frac_cpu", input)
        return operation(node, forward, lambda grad, result, x: derivative(grad, x, result), input)

    def in_place_function(input):
        return input.copy_(function(input))

    for label, of in [(name, function)] + [(name + "_", in_place_function)] * in_place:
        of.__name__ = of.__qualname__ = label
        FUNCTIONS[label] = of
        _torch.add_method(label, of)


FUNCTIONS = {}


def _expm1(x):
    e = x.exp()
    # Without the cancellation of eˣ − 1 near 0.
    return where(e == 1, x, where(e - 1 == -1, e - 1, where(e.isinf(), e, (e - 1) * x / e.log())))


def _log1p(x):
    u = 1 + x
    return where((u == 1) | u.isinf(), x, u.log() * x / (u - 1))


def _erf(x):
    small = x.abs() < 1e-3
    safe = where(small, 1.0, x)
    # gelu(y) = y · (1 + erf(y / √2)) / 2
    y = safe * math.sqrt(2)
    return where(small, x * (1 - x * x / 3) * (2 / math.sqrt(math.pi)), 2 * _torch.F_gelu(y) / y - 1)


def _erfc(x):
    # Far from 0, 1 − erf(x) would cancel: a continued fraction.
    far = x.abs() > 2
    y = where(far, x.abs(), 2.0)
    fraction = y
    for i in range(60, 0, -1):
        fraction = y + (i / 2) / fraction
    tail = (-y * y).exp() / (fraction * math.sqrt(math.pi))
    return where(far, where(x > 0, tail, 2 - tail), 1 - _erf(x))


def _atan(x):
    near = x.abs() <= 1
    y = where(near, x, 1 / x)
    angle = y / (1 + 0.28 * y * y)
    for _ in range(3):  # Newton's method for tan(angle) = y
        angle = angle - (angle.sin() / angle.cos() - y) * angle.cos().square()
    return where(near, angle, where(x.isnan(), x, math.pi / 2 * x.sign() - angle))


def _asin(x):
    return _atan(x / ((1 - x) * (1 + x)).sqrt())


def _sinh(x):
    m = _expm1(x)
    return where(m.isinf(), m, (m + m / (m + 1)) / 2)


def _asinh(x):
    a = x.abs()
    return _log1p(a + a * a / (1 + (a * a + 1).sqrt())) * x.sign()


_add("tan", "TanBackward0", lambda x: x.sin() / x.cos(), lambda grad, x, y: grad * (1 + y.pow(2)))
_add("asin", "AsinBackward0", _asin, lambda grad, x, y: grad * (-x * x + 1).rsqrt())
_add("acos", "AcosBackward0", lambda x: math.pi / 2 - _asin(x), lambda grad, x, y: grad * -(-x * x + 1).rsqrt())
_add("atan", "AtanBackward0", _atan, lambda grad, x, y: grad / (x * x + 1))
_add("sinh", "SinhBackward0", _sinh, lambda grad, x, y: grad * FUNCTIONS["cosh"](x))
_add("cosh", "CoshBackward0", lambda x: (x.exp() + (-x).exp()) / 2, lambda grad, x, y: grad * FUNCTIONS["sinh"](x))
_add("asinh", "AsinhBackward0", _asinh, lambda grad, x, y: grad * (x.pow(2) + 1).rsqrt())
_add("acosh", "AcoshBackward0", lambda x: (x + ((x - 1) * (x + 1)).sqrt()).log(), lambda grad, x, y: grad * (x.pow(2) - 1).rsqrt())
_add("atanh", "AtanhBackward0", lambda x: _log1p(2 * x / (1 - x)) / 2, lambda grad, x, y: grad * 1 / (1 - x.pow(2)))
_add("log2", "Log2Backward0", lambda x: x.log() / math.log(2), lambda grad, x, y: grad / (x * math.log(2)))
_add("log10", "Log10Backward0", lambda x: x.log() / math.log(10), lambda grad, x, y: grad / (x * math.log(10)))
_add("log1p", "Log1PBackward0", _log1p, lambda grad, x, y: grad / (x + 1))
_add("expm1", "Expm1Backward0", _expm1, lambda grad, x, y: grad * (y + 1))
_add("exp2", "Exp2Backward0", lambda x: (x * math.log(2)).exp(), lambda grad, x, y: grad * y * math.log(2))
_add("erf", "ErfBackward0", _erf, lambda grad, x, y: 2 / math.sqrt(math.pi) * (-x.pow(2)).exp() * grad)
_add("erfc", "ErfcBackward0", _erfc, lambda grad, x, y: -2 / math.sqrt(math.pi) * (-x.pow(2)).exp() * grad)


def _truncated(x):
    return where(x < 0, x.ceil(), x.floor())


_add("trunc", "TruncBackward0", _truncated, lambda grad, x, y: _torch.zeros_like(grad))
_of_floats = FUNCTIONS["trunc"]


def trunc(input):
    if input.dtype == _torch.bool:
        expect_floats("trunc_vml_cpu", input)
    return _of_floats(input) if input.is_floating_point() else input.clone()


FUNCTIONS["trunc"] = trunc
_torch.add_method("trunc", trunc)
_add("frac", "FracBackward0", lambda x: x - _truncated(x), lambda grad, x, y: grad)
for _new, _old in [("arctan", "atan"), ("arcsin", "asin"), ("arccos", "acos"), ("fix", "trunc")]:
    FUNCTIONS[_new] = FUNCTIONS[_old]
    _torch.add_method(_new, FUNCTIONS[_old])
