# The first lines of PyTorch 2.11's errors, on the CPU: `python words.py > words.json`.
#
# From the calls of `words.rs`, as Python has them: each line below is one.
import json
import warnings

import torch
import torch.nn.functional as F

warnings.simplefilter("ignore")


def zeros(*sizes):
    return torch.zeros(sizes)


def of(dtype, *sizes):
    return torch.zeros(sizes, dtype=getattr(torch, dtype))


def longs(*values):
    return torch.tensor(values)


def leaf(*sizes):
    return torch.ones(sizes, requires_grad=True)


CALLS = """
zeros(4, 5) + zeros(2, 3)
zeros(4, 5) == zeros(2, 3)
torch.maximum(zeros(4, 5), zeros(2, 3))
zeros(4, 5).mul_(zeros(2, 3))
zeros(4, 5).copy_(zeros(2, 3))
zeros(4, 5).add_(zeros(6, 2, 3))
torch.where(of('bool', 1), zeros(4, 5), zeros(2, 3))
torch.where(of('bool', 4, 5), zeros(2, 3), zeros(2, 7))
torch.where(of('bool', 2, 3), zeros(3, 1), zeros(4))
zeros(2).masked_fill(zeros(3), zeros(2))
zeros(3).masked_fill_(of('bool', 2, 3), 1)
(leaf(2) * 2).masked_fill_(of('bool', 3), 1e300)
F.mse_loss(zeros(4, 5), zeros(2, 3))
F.l1_loss(zeros(4, 5), zeros(2, 3))
zeros(5, 2, 3, 4) @ zeros(6, 3, 4, 5)
leaf(3).add_(zeros(4))
leaf(3).mul_(zeros(2, 3))
leaf(3).view(3, 1).add_(zeros(4, 4, 4))
(leaf(3) * 2).add_(zeros(4))
zeros(3)[longs(3)]
zeros(3)[longs(0, -4)]
zeros(3, 2)[longs(7)]
zeros(0)[longs(0)]
zeros(0, 2)[torch.tensor(0)]
zeros(3, 0)[torch.tensor(5)]
zeros()[zeros(1)]
zeros(3)[zeros(1)]
zeros().index_select(0, zeros(2))
zeros(2, 0).max(1)
zeros(2, 0).min(-1)
zeros(2, 0, 3).amax((0, -2))
zeros(2, 0, 3).amin((2, 1, 1))
F.embedding(longs(0), zeros())
F.embedding(longs(0), zeros(), padding_idx=1)
F.embedding(longs(0), leaf())
F.embedding(longs(0), zeros(0, 2), padding_idx=0)
F.embedding(longs(0), zeros(0, 2), padding_idx=-1)
leaf(3).copy_(zeros(4))
leaf(3).copy_(zeros(2, 3))
leaf(3).clamp_()
leaf(3).sub_(of('bool', 3))
zeros()[longs(0)]
zeros()[0]
zeros()[-1]
zeros(3)[5]
zeros(2, 3).expand(3)
of('bool', 2, 3).expand(3)
of('bfloat16', 2, 3).expand(3)
zeros(2, 3).expand(2, 4)
zeros(2, 3).expand(-2, 3)
zeros(2, 3).expand(-1, 2, 3)
zeros(3).expand(-1, 2)
zeros(1).expand(-2)
zeros().expand(-1)
zeros(3).select(0, 3)
zeros(3).select(0, -4)
zeros(3).select(1, 0)
zeros().select(0, 0)
zeros(3).narrow(0, 2, 2)
zeros(3).narrow(0, 4, 0)
zeros(0).narrow(0, 1, 0)
zeros().narrow(0, 0, 1)
torch.ops.aten.slice(zeros(), 0, 0, 1, 1)
zeros().unfold(0, 2, 1)
zeros().split(1)
zeros().split(1, 5)
zeros(3).split(0)
zeros(3).split(0, 1)
zeros().chunk(0)
zeros(3).chunk(0, 5)
zeros(3).chunk(1, 5)
zeros().size(0)
zeros(2, 3).permute(0, -2)
zeros(3).index_select(0, zeros(1))
zeros(3).index_select(0, of('int64', 1, 1))
zeros(3).index_select(5, of('int64', 1, 1))
zeros(3).index_select(0, longs(5))
zeros(3, 2).index_select(0, longs(5))
zeros(3, 2).index_select(1, longs(0, -3))
zeros(3, 2, 2).index_select(1, longs(5))
zeros(3, 2, 2).index_select(2, longs(5))
zeros(3, 0).index_select(0, longs(5))
zeros(3, 0).index_select(1, longs(5))
zeros().index_select(0, longs(0, 0))
zeros(3).gather(0, zeros(1))
zeros(3).gather(0, of('uint8', 1))
zeros(3, 2).gather(0, longs(0))
zeros(3, 2).gather(0, of('int64', 1, 3))
zeros(3).gather(0, longs(-1))
zeros(3).index_add(0, longs(0), zeros(2))
zeros(3, 2).index_add(0, longs(0, 1), zeros(2, 3))
zeros(3, 2).index_add(0, longs(0, 1), zeros(2))
zeros(3, 2).index_add(1, longs(0), zeros(2))
zeros(3, 2).index_add(0, zeros(2), zeros(2, 2))
zeros(3, 2).index_add(0, of('int64', 2, 1), zeros(2, 2))
zeros(3, 2).index_add(0, longs(0, 1), of('float64', 2, 3))
zeros(3).index_add(0, longs(0, 5), zeros(2))
zeros(3, 2).index_add(0, longs(0, 5), zeros(2, 2))
zeros().index_add(0, longs(0), zeros(1))
zeros(3).scatter_add(0, zeros(1), zeros(1))
zeros(3, 2).scatter_add(0, longs(0, 1), zeros(2, 2))
zeros(3).scatter_add(0, longs(0), zeros(1, 1))
zeros(3).scatter_add(0, longs(0, 1), zeros(1))
zeros(3, 2).scatter_add(0, of('int64', 1, 3), zeros(1, 3))
zeros(3).scatter_add(0, longs(0), of('float64', 1))
zeros(3).scatter_add(0, longs(0, 5), zeros(2))
of('bool', 2).floor()
of('bool', 2).ceil()
of('bool', 2).round()
of('bool', 2).abs()
of('bool', 2).neg()
of('bool', 2).relu()
of('bool', 2).floor_()
of('bool', 2).relu_()
of('int64', 2).mean(5)
of('bool', 2, 2) @ of('bool', 2)
zeros(2, 2) @ of('float64', 2)
zeros(2, 2, 2) @ of('float64', 2)
zeros(2, 2) @ of('float64', 3)
F.linear(zeros(2, 2), zeros(2), zeros(2))
F.linear(zeros(), zeros(2, 2))
F.linear(zeros(4, 2), zeros(4, 2), zeros(3, 3))
F.linear(zeros(1, 2), zeros(5, 2), zeros(0, 3))
F.linear(zeros(1, 2), zeros(1, 2), zeros(4))
F.linear(zeros(2, 2), zeros(1, 2), zeros(3, 3, 5))
F.linear(zeros(2), zeros(3, 2), zeros(4))
F.linear(zeros(4, 1, 1, 3), zeros(2, 3), zeros(2, 4, 1))
F.linear(zeros(2, 2), of('float64', 2), zeros(2))
zeros().flatten(1, -1)
F.mse_loss(leaf(2), of('float64', 2)).backward()
F.mse_loss(of('float64', 2), leaf(2)).backward()
zeros(3, 2).index_add(0, longs(0, 1), zeros())
of('bool', 1, 2, 2) @ of('bool', 1, 2, 2)
F.linear(zeros(2, 5), of('float64', 2, 2), zeros(2))
F.linear(of('float64', 2, 2), zeros(2, 2), zeros(2))
F.linear(of('float64', 2, 2), zeros(2, 2), of('float64', 2))
F.conv2d(zeros(1, 1, 3, 3), zeros(1, 1, 2, 2), dilation=0)
F.conv2d(zeros(2, 1, 3, 3), zeros(1, 1, 2, 2), dilation=0)
F.conv2d(zeros(1, 2, 3, 3), zeros(2, 1, 2, 2), dilation=0, groups=2)
F.conv2d(zeros(1, 1, 9, 9), zeros(1, 1, 4, 4), dilation=0)
F.conv2d(of('float64', 2, 1, 3, 3), of('float64', 1, 1, 2, 2), dilation=0)
torch.where(zeros(2), zeros(2), zeros(2))
torch.where(zeros(2), zeros(2), 1e300)
torch.where(zeros(2), 1, 2)
torch.where(of('bool', 2), of('uint8', 2), 300)
torch.where(of('bool', 2), of('int32'), 2**40)
torch.where(of('bool', 2), 1e300, 1)
zeros(2).masked_fill(longs(1, 0), zeros(2))
zeros(2).masked_fill(longs(1, 0), 2)
zeros(2).masked_fill_(of('uint8', 2), 1e300)
of('float16', 2).masked_fill(of('bool', 2), -1e9)
of('int32', 2).masked_fill_(of('bool', 2), longs(2**40)[0])
longs(1, 0).masked_fill(of('bool', 2), float('nan'))
leaf(2).masked_fill_(zeros(2), zeros(2))
longs(1).requires_grad_()
torch.zeros(2, dtype=torch.int64, requires_grad=True)
F.cross_entropy(zeros(2, 3), of('int64', 2, 1))
F.cross_entropy(zeros(2, 3), of('int64', 2, 3))
F.cross_entropy(zeros(2, 3), of('int64'))
F.cross_entropy(zeros(3), of('int64', 2))
F.cross_entropy(zeros(), longs(0))
F.nll_loss(zeros(), longs(0))
F.nll_loss(zeros(3), of('int64', 3))
F.nll_loss(zeros(2, 3), zeros(2, 3))
F.cross_entropy(zeros(2, 3, 4), of('int64', 2))
F.cross_entropy(zeros(2, 3, 4, 5), of('int64', 2, 4))
F.cross_entropy(zeros(2, 3, 4, 5), of('int64', 2, 4, 6))
F.cross_entropy(zeros(2, 3, 4), of('int64', 2, 4), weight=zeros(4))
F.cross_entropy(zeros(2, 3, 4, 5), of('int32', 2, 4, 6), weight=zeros(4))
F.cross_entropy(zeros(2, 3), of('int64', 2), weight=zeros(3, 1))
F.cross_entropy(zeros(2, 3), of('int32', 2), weight=of('float64', 3))
F.cross_entropy(zeros(2, 3), of('int64', 2), weight=leaf(3))
F.nll_loss(of('int64', 2, 3), of('int32', 2))
F.nll_loss(of('int64', 2, 3, 4), of('int64', 2, 4))
F.cross_entropy(zeros(1, 3, 2), of('uint8', 1, 2))
F.batch_norm(zeros(2, 3), leaf(3), zeros(3))
"""

words = {}
for call in CALLS.strip().splitlines():
    try:
        eval(call)
    except Exception as error:
        words[call] = str(error).split("\n")[0]
print(json.dumps({"torch": torch.__version__.split("+")[0], "words": words}, indent=0))
