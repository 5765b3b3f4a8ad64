# The strides of PyTorch 2.11's results, for operands of many layouts: `python strides.py > strides.json`.
#
# `strides.rs` has the same layouts and the same calls, by name. A call that PyTorch refuses has `null`.
import json
import warnings

import torch
import torch.nn.functional as F

warnings.simplefilter("ignore")


def zeros(*sizes):
    return torch.zeros(sizes)


LAYOUTS = {
    "row-major": zeros(3, 2),
    "transposed": zeros(3, 2).t(),
    "column": zeros(3, 1),
    "row": zeros(3, 1).t(),
    "stepped": zeros(2, 4)[:, ::2],
    "stepped and transposed": zeros(4, 4)[:, ::2].t(),
    "expanded rows": zeros(1, 3).expand(2, 3),
    "expanded columns": zeros(2, 1).expand(2, 3),
    "expanded and transposed": zeros(1, 3).expand(2, 3).t(),
    "number": zeros(),
    "vector": zeros(5),
    "stepped vector": zeros(10)[::2],
    "empty": zeros(0, 3),
    "empty and transposed": zeros(0, 3).t(),
    "empty columns": zeros(3, 0).t(),
    "images without channels": zeros(2, 4, 5, 0).permute(0, 3, 1, 2),
    "permuted": zeros(2, 3, 4).permute(2, 0, 1),
    "swapped": zeros(2, 3, 4).transpose(0, 1),
    "last two swapped": zeros(2, 3, 4).transpose(1, 2),
    "with ones": zeros(2, 1, 4).permute(2, 1, 0),
    "middle expanded": zeros(2, 1, 4).expand(2, 3, 4),
    "middle expanded and swapped": zeros(2, 1, 4).expand(2, 3, 4).transpose(0, 2),
    "narrowed": zeros(3, 4, 5)[:, 1:3],
    "narrowed and permuted": zeros(3, 4, 5)[:, 1:3].permute(2, 1, 0),
    "image": zeros(2, 3, 4, 5),
    "channels last": zeros(2, 4, 5, 3).permute(0, 3, 1, 2),
    "one channels last": zeros(1, 4, 5, 3).permute(0, 3, 1, 2),
    "one channel": zeros(2, 4, 5, 1).permute(0, 3, 1, 2),
    "channels last, cropped": zeros(2, 6, 7, 3).permute(0, 3, 1, 2)[:, :, 1:5, 1:6],
    "every other image": zeros(4, 3, 4, 5)[::2],
    "rotated image": zeros(2, 3, 4, 5).permute(0, 1, 3, 2),
    "pixels first": zeros(2, 3, 4, 5).permute(2, 3, 0, 1),
    "five dimensions": zeros(2, 3, 2, 2, 2).permute(0, 2, 3, 4, 1),
}


def beside(x):
    """A row-major tensor of the same sizes."""
    return torch.zeros(x.shape)


def last(x):
    """A vector to broadcast along the last dimension."""
    return torch.zeros(x.shape[-1:])


def index(x):
    return torch.zeros(x.shape, dtype=torch.int64)


def positions(count):
    return torch.zeros(count, dtype=torch.int64)


def leaf_gradient(x):
    leaf = x.detach().requires_grad_()
    (leaf * 2).sum().backward()
    return leaf.grad


def parameter_gradient(x):
    parameter = torch.nn.Parameter(x)
    F.relu(parameter).sum().backward()
    return parameter.grad


def gradient_of(function):
    def of(x):
        leaf = x.detach().requires_grad_()
        y = function(leaf)
        return torch.autograd.grad(y, leaf, torch.ones(y.shape))[0]

    return of


def written(x):
    y = torch.zeros(x.shape)
    return y.copy_(x)


CALLS = {
    "neg": lambda x: x.neg(),
    "abs": lambda x: x.abs(),
    "sign": lambda x: x.sign(),
    "square": lambda x: x.square(),
    "relu": lambda x: x.relu(),
    "floor": lambda x: x.floor(),
    "sqrt": lambda x: x.sqrt(),
    "rsqrt": lambda x: x.rsqrt(),
    "reciprocal": lambda x: x.reciprocal(),
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "sin": lambda x: x.sin(),
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "gelu": lambda x: F.gelu(x),
    "silu": lambda x: F.silu(x),
    "softplus": lambda x: F.softplus(x),
    "leaky_relu": lambda x: F.leaky_relu(x),
    "clamp": lambda x: x.clamp(0.0, 1.0),
    "clamp min": lambda x: x.clamp(min=0.0),
    "pow 2": lambda x: x.pow(2.0),
    "pow 3": lambda x: x.pow(3.0),
    "pow 1": lambda x: x.pow(1.0),
    "pow 1.5": lambda x: x.pow(1.5),
    "isnan": lambda x: x.isnan(),
    "logical_not": lambda x: x.logical_not(),
    "exp of integers": lambda x: x.long().exp(),
    "floor of integers": lambda x: x.long().floor(),
    "add number": lambda x: x + 1.0,
    "mul number": lambda x: x * 2.0,
    "mul half number": lambda x: x.half() * 2.0,
    "rsub": lambda x: 1.0 - x,
    "div number": lambda x: x / 2.0,
    "eq number": lambda x: x == 0.0,
    "add itself": lambda x: x + x,
    "add row-major": lambda x: x + beside(x),
    "row-major add": lambda x: beside(x) + x,
    "mul row-major": lambda x: x * beside(x),
    "lt row-major": lambda x: x < beside(x),
    "maximum row-major": lambda x: torch.maximum(beside(x), x),
    "add vector": lambda x: x + last(x),
    "vector add": lambda x: last(x) + x,
    "add 0-dim": lambda x: x + zeros(),
    "0-dim add": lambda x: zeros() + x,
    "add f64": lambda x: x + beside(x).double(),
    "add column": lambda x: x + x[..., :1],
    "where itself": lambda x: torch.where(x > 0, x, x),
    "where row-major": lambda x: torch.where(beside(x) > 0, x, x),
    "where number": lambda x: torch.where(x > 0, x, 0.0),
    "where of numbers": lambda x: torch.where(x > 0, 1.0, 0.0),
    "masked_fill": lambda x: x.masked_fill(x > 0, 1.0),
    "masked_fill row-major mask": lambda x: x.masked_fill(beside(x) > 0, 1.0),
    "masked_fill vector mask": lambda x: x.masked_fill(last(x) > 0, 1.0),
    "to f64": lambda x: x.double(),
    "to f16": lambda x: x.half(),
    "to copy": lambda x: x.to("cpu", copy=True),
    "clone": lambda x: x.clone(),
    "contiguous": lambda x: x.contiguous(),
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "to channels last": lambda x: x.to(memory_format=torch.channels_last),
    "detach": lambda x: x.detach(),
    "copy_": written,
    "zeros_like": lambda x: torch.zeros_like(x),
    "ones_like": lambda x: torch.ones_like(x),
    "full_like": lambda x: torch.full_like(x, 1.0),
    "empty_like": lambda x: torch.empty_like(x),
    "rand_like": lambda x: torch.rand_like(x),
    "randn_like": lambda x: torch.randn_like(x),
    "new_full": lambda x: x.new_full(x.shape, 1.0),
    "bernoulli": lambda x: x.bernoulli(),
    "dropout": lambda x: F.dropout(x, 0.5, True),
    "dropout 1": lambda x: F.dropout(x, 1.0, True),
    "parameter": lambda x: torch.nn.Parameter(x),
    "gradient of a leaf": leaf_gradient,
    "gradient of a parameter": parameter_gradient,
    "gradient of mul": gradient_of(lambda x: x * 2),
    "gradient of relu": gradient_of(lambda x: x.relu()),
    "gradient of tanh": gradient_of(lambda x: x.tanh()),
    "gradient of sigmoid": gradient_of(lambda x: x.sigmoid()),
    "gradient of gelu": gradient_of(lambda x: F.gelu(x)),
    "gradient of silu": gradient_of(lambda x: F.silu(x)),
    "gradient of softplus": gradient_of(lambda x: F.softplus(x)),
    "gradient of leaky_relu": gradient_of(lambda x: F.leaky_relu(x)),
    "gradient of where": gradient_of(lambda x: torch.where(x.detach() > 0, x, 0.0)),
    "gradient of masked_fill": gradient_of(lambda x: x.masked_fill(x.detach() > 0, 0.0)),
    "gradient of div": gradient_of(lambda x: 1.0 / x),
    "gradient of abs": gradient_of(lambda x: x.abs()),
    "gradient of clamp": gradient_of(lambda x: x.clamp(0.0, 1.0)),
    "gradient of cat": gradient_of(lambda x: torch.cat([x, x])),
    "gradient of matmul": gradient_of(lambda x: x @ zeros(x.shape[-1], 4)),
    "gradient of sum": gradient_of(lambda x: x.sum()),
    "gradient of exp": gradient_of(lambda x: x.exp()),
    "gradient of add vector": gradient_of(lambda x: x + last(x)),
    "gradient of sum over 0": gradient_of(lambda x: x.sum(0)),
    "gradient of clone": gradient_of(lambda x: x.clone()),
    "gradient of contiguous": gradient_of(lambda x: x.contiguous() * 2),
    "gradient of softmax": gradient_of(lambda x: x.softmax(-1)),
    "softmax": lambda x: x.softmax(-1),
    "softmax over 0": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(-1),
    "log_softmax over 0": lambda x: x.log_softmax(0),
    "cumsum": lambda x: x.cumsum(0),
    "cumsum last": lambda x: x.cumsum(-1),
    "sum": lambda x: x.sum(),
    "sum over 0": lambda x: x.sum(0),
    "sum over last": lambda x: x.sum(-1),
    "sum over last, kept": lambda x: x.sum(-1, keepdim=True),
    "mean over 0": lambda x: x.mean(0),
    "mean over two": lambda x: x.mean((0, -1)),
    "amax over 0": lambda x: x.amax(0),
    "amin over last": lambda x: x.amin(-1),
    "argmax over 0": lambda x: x.argmax(0),
    "argmax over last, kept": lambda x: x.argmax(-1, keepdim=True),
    "max over 0": lambda x: x.max(0).values,
    "var over 0": lambda x: x.var(0),
    "std over last": lambda x: x.std(-1),
    "norm": lambda x: x.norm(),
    "cat": lambda x: torch.cat([x, x]),
    "cat last": lambda x: torch.cat([x, x], -1),
    "cat row-major": lambda x: torch.cat([x, beside(x)]),
    "cat one": lambda x: torch.cat([x]),
    "stack": lambda x: torch.stack([x, x]),
    "stack last": lambda x: torch.stack([x, x], -1),
    "index_select": lambda x: x.index_select(0, positions(2)),
    "index_select last": lambda x: x.index_select(-1, positions(2)),
    "index rows": lambda x: x[positions(2)],
    "gather": lambda x: x.gather(0, index(x)),
    "take_along_dim": lambda x: torch.take_along_dim(x, index(x), 0),
    "scatter_add": lambda x: x.scatter_add(0, index(x), beside(x)),
    "index_add": lambda x: x.index_add(0, positions(x.shape[0]), beside(x)),
    "masked_select": lambda x: x.masked_select(x >= 0),
    "flatten": lambda x: x.flatten(),
    "reshape": lambda x: x.reshape(-1),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "unsqueeze last": lambda x: x.unsqueeze(-1),
    "squeeze": lambda x: x.squeeze(0),
    "transpose": lambda x: x.transpose(0, -1),
    "matmul vector": lambda x: x @ last(x),
    "matmul": lambda x: x @ zeros(x.shape[-1], 4),
    "matmul transposed": lambda x: x @ zeros(4, x.shape[-1]).t(),
    "bmm": lambda x: x.bmm(zeros(x.shape[0], x.shape[2], 4)),
    "linear": lambda x: F.linear(x, zeros(4, x.shape[-1]), zeros(4)),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "mse_loss": lambda x: F.mse_loss(x, beside(x), reduction="none"),
    "l1_loss": lambda x: F.l1_loss(x, beside(x), reduction="none"),
    "cross_entropy": lambda x: F.cross_entropy(x, positions((x.shape[0], *x.shape[2:])), reduction="none"),
    "conv2d": lambda x: F.conv2d(x, zeros(4, x.shape[1], 3, 3), padding=1),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "embedding": lambda x: F.embedding(x.long(), zeros(4, 6)),
}


def strides(call, x):
    try:
        return list(call(x).stride())
    except (RuntimeError, IndexError, ValueError):
        return None


print("{")
for i, (name, call) in enumerate(CALLS.items()):
    row = {layout: strides(call, x) for layout, x in LAYOUTS.items()}
    print(f" {json.dumps(name)}: {json.dumps(row)}" + ("," if i + 1 < len(CALLS) else ""))
print("}")
