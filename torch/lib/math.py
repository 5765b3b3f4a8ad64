"""`math`"""

from _math import *
from _math import is_close as _is_close


def isclose(a, b, *, rel_tol=1e-09, abs_tol=0.0):
    return _is_close(float(a), float(b), rel_tol, abs_tol)


def gcd(*numbers):
    result = 0
    for number in numbers:
        a, b = abs(result), abs(number)
        while b:
            a, b = b, a % b
        result = a
    return result


def lcm(*numbers):
    result = 1
    for number in numbers:
        if number == 0:
            return 0
        result = abs(result * number) // gcd(result, number)
    return result


def factorial(n):
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    result = 1
    for factor in range(2, n + 1):
        result *= factor
    return result


def perm(n, k=None):
    k = n if k is None else k
    result = 1
    for factor in range(n - k + 1, n + 1):
        result *= factor
    return result if k <= n else 0


def comb(n, k):
    if k > n:
        return 0
    k = min(k, n - k)
    result = 1
    for i in range(k):
        result = result * (n - i) // (i + 1)
    return result


def isqrt(n):
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    if n == 0:
        return 0
    root = 1 << ((n.bit_length() + 1) // 2)
    while True:
        better = (root + n // root) // 2
        if better >= root:
            return root
        root = better


def prod(iterable, *, start=1):
    for number in iterable:
        start *= number
    return start


def dist(p, q):
    return sqrt(fsum((a - b) ** 2 for a, b in zip(p, q)))


def sumprod(p, q):
    return sum(a * b for a, b in zip(p, q))
