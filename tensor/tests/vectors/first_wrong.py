# The first lines of PyTorch 2.11's errors where types differ, or several things are wrong at once, on the CPU:
# `python first_wrong.py > first_wrong.json`.
#
# From the calls of `first_wrong.rs`, as Python has them: each line below is one.
import json

import torch
import torch.nn.functional as F


def zeros(*sizes):
    return torch.zeros(sizes)


def of(dtype, *sizes):
    return torch.zeros(sizes, dtype=getattr(torch, dtype))


def longs(*values):
    return torch.tensor(values)


def leaf(*sizes):
    return torch.ones(sizes, requires_grad=True)


CALLS = """
F.layer_norm(of('float64', 2), [], zeros(2))
F.layer_norm(zeros(2, 3), [3], of('float64', 3))
F.layer_norm(zeros(2, 3), [3], zeros(3), of('float64', 3))
F.layer_norm(of('float16', 2, 3), [3], of('float16', 3), zeros(3))
F.layer_norm(of('float64', 2, 3), [3], zeros(3), zeros(3))
F.layer_norm(of('float64', 2, 3), [3], zeros(3), of('float64', 3))
F.layer_norm(of('int64', 2, 3), [3], of('int64', 3), zeros(3))
F.layer_norm(of('int64', 2, 3), [3], zeros(3))
F.layer_norm(zeros(2, 3), [3], of('float64', 2))
F.batch_norm(zeros(2, 3), zeros(3), zeros(3), zeros(3), of('float64', 3), True)
F.batch_norm(zeros(2, 3), of('float16', 3), zeros(3), zeros(3), of('float64', 3), True)
F.batch_norm(zeros(2, 3), zeros(3), zeros(3), of('float64', 3))
F.batch_norm(of('float16', 2, 3), of('float16', 3), zeros(3))
F.batch_norm(of('float64', 2, 3), zeros(3), zeros(3))
F.batch_norm(of('int64', 2, 3), zeros(3), zeros(3), of('float64', 3))
F.batch_norm(zeros(2, 0), None, None, zeros(0), None, True)
F.conv2d(zeros(1, 1, 3, 3), of('float64', 1, 1, 2, 2))
F.conv2d(zeros(2, 1, 3, 3), of('float64', 1, 1, 2, 2))
F.conv2d(zeros(1, 1, 3, 3), of('bfloat16', 1, 1, 2, 2), dilation=0)
F.conv2d(of('bfloat16', 1, 1, 3, 3), zeros(1, 1, 2, 2), dilation=0)
F.conv2d(of('float64', 1, 1, 3, 3), of('bool', 1, 1, 2, 2))
F.conv2d(of('bool', 1, 1, 3, 3), zeros(1, 1, 2, 2))
F.conv2d(of('float64', 1, 1, 3, 3), of('float64', 1, 1, 2, 2), zeros(1))
F.conv2d(of('bfloat16', 2), zeros(1), zeros(1))
F.adaptive_avg_pool2d(leaf(2, 3, 3), (0, 3)).sum().backward()
F.adaptive_avg_pool2d(leaf(2, 0, 3, 3), (2, 2)).sum().backward()
F.adaptive_avg_pool2d(leaf(0, 2, 3, 3), (3, 0)).sum().backward()
zeros(3).scatter_add(0, of('int64', 1, 1), of('float64', 1))
zeros(3, 2).scatter_add(0, of('int64', 2, 2), of('float64', 1, 2))
zeros(2, 2).scatter_add(0, of('int64', 2, 2), zeros(3))
zeros(2, 2).scatter_add(0, of('int64', 2, 2), zeros(1))
zeros(3, 2).index_add(0, of('int32', 1) + 5, zeros(1, 2))
zeros(2, 3, 2).index_add(1, longs(5), zeros(2, 1, 2))
zeros(2, 3, 2).index_add(2, longs(5), zeros(2, 3, 1))
torch.bmm(of('bool', 1, 2, 2), zeros(1, 2, 2))
of('bool', 2, 2) @ zeros(2)
zeros(2) @ of('float64', 3)
leaf(1, 3) @ zeros(2, 2, 1)
zeros(1, 3) @ zeros(2, 2, 1)
F.linear(zeros(2, 3, 4), zeros(1, 4), zeros(2, 4))
F.linear(zeros(2, 3, 4), zeros(2, 4), zeros(1, 1, 2))
F.linear(zeros(2, 3, 4), zeros(2, 4), zeros(5, 2))
F.linear(of('int64', 4, 1, 1), zeros(3, 2), zeros())
"""

words = {}
for call in CALLS.strip().splitlines():
    try:
        eval(call)
    except Exception as error:
        words[call] = str(error).split("\n")[0]
print(json.dumps({"torch": torch.__version__.split("+")[0], "words": words}, indent=0))
