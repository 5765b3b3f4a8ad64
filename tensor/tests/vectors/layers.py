# What PyTorch 2.11 computes for pooling, normalisation, activations and embeddings, and along a dimension: `python layers.py > layers.json`.
#
# A case is an operation, its arguments, its inputs, the result, the gradients of the inputs when the result's gradient
# is `weights`, and what running values have become. A tensor is [type, sizes, values]; the values are one text, since a
# reader of JSON may miss the last bit of a number.
import itertools
import json

import torch
import torch.nn.functional as F


def listed(x):
    letter = {torch.float32: "f", torch.float64: "d", torch.int64: "l", torch.int32: "i", torch.uint8: "u"}[x.dtype]
    digits = "%.9g" if x.dtype == torch.float32 else "%.17g"
    return [letter, list(x.shape), " ".join(digits % v for v in x.detach().flatten().tolist())]


def numbers(sizes, dtype, scale=1.0):
    """Normal numbers that are short to write down."""
    return (torch.randn(sizes) * 16 * scale).round().div(16).to(dtype)


def weights(shape):
    count = torch.Size(shape).numel()
    return (torch.arange(count, dtype=torch.float64).mul(37).add(11).remainder(61) / 32 - 0.9375).reshape(shape)


cases = []


def case(name, arguments, inputs, run, state=()):
    inputs = [x.clone() for x in inputs]
    given = [listed(x) for x in inputs]
    before = [listed(x) for x in state]
    for x in inputs:
        x.requires_grad_(x.is_floating_point())
    out = run(*inputs)
    if out.requires_grad:
        out.backward(weights(out.shape).to(out.dtype))
    gradients = [None if x.grad is None else listed(x.grad) for x in inputs]
    node = out.grad_fn.name() if out.grad_fn else None
    cases.append({"name": name, "arguments": arguments, "inputs": given, "state": before, "node": node,
                  "result": listed(out), "gradients": gradients, "state after": [listed(x) for x in state]})


torch.manual_seed(0)
INF, NAN = float("inf"), float("nan")

# Pools: sizes, kernel, stride, padding, dilation.
images = [(1, 1, 4, 4), (2, 1, 7, 6), (2, 5, 9), (0, 2, 4, 4)]
windows = [((2, 2), (2, 2), (0, 0), (1, 1)), ((3, 3), (2, 2), (1, 1), (1, 1)), ((2, 3), (1, 2), (1, 0), (1, 1)),
           ((3, 2), (2, 3), (1, 1), (1, 2)), ((1, 3), (3, 1), (0, 1), (2, 1)), ((3, 3), (1, 1), (0, 0), (1, 1))]
for sizes, (kernel, stride, padding, dilation), ceil_mode in itertools.product(images, windows, (False, True)):
    for dtype in (torch.float32, torch.uint8 if ceil_mode else torch.int64):
        x = torch.randint(0, 9, sizes).to(dtype)
        if dtype == torch.float32 and x.numel() > 30:
            x.view(-1)[5], x.view(-1)[9], x.view(-1)[10], x.view(-1)[17] = NAN, NAN, -INF, INF
        arguments = [kernel, stride, padding, dilation, ceil_mode]
        case("max_pool2d", arguments, [x], lambda x: F.max_pool2d(x, kernel, stride, padding, dilation, ceil_mode))
    if dilation == (1, 1):
        for include, divisor in ((True, None), (False, None), (True, 3), (False, -2)):
            x = numbers(sizes, torch.float32 if include else torch.float64)
            case("avg_pool2d", [kernel, stride, padding, ceil_mode, include, divisor], [x],
                 lambda x: F.avg_pool2d(x, kernel, stride, padding, ceil_mode, include, divisor))
for sizes, output in itertools.product(images, [(1, 1), (2, 2), (3, 5), (None, 2), (7, None), (12, 1)]):
    x = numbers(sizes, torch.float64 if output[1] == 2 else torch.float32)
    case("adaptive_avg_pool2d", [output], [x], lambda x: F.adaptive_avg_pool2d(x, output))

# Batch normalisation.
for sizes, training, affine, tracked in itertools.product(
        [(4, 3), (2, 3, 5), (3, 2, 4, 5), (3, 1, 19, 20), (0, 3, 2)], (True, False), (0, 1, 2), (True, False)):
    if not training and not tracked:
        continue
    for dtype, momentum, eps in ((torch.float32, 0.1, 1e-5), (torch.float64, 0.75, 0.01)):
        if sizes == (3, 1, 19, 20) and not (affine and tracked and training):
            continue
        # Far from 0, where a variance by way of the mean of squares would fail.
        x = numbers(sizes, dtype, 2) + 30
        own = [numbers(sizes[1], dtype) for _ in range(affine)]
        state = [numbers(sizes[1], dtype), numbers(sizes[1], dtype).abs() + 0.5] if tracked else []
        case("batch_norm", [training, momentum, eps], [x, *own],
             lambda x, weight=None, bias=None: F.batch_norm(x, *(state or [None, None]), weight, bias, training,
                                                            momentum, eps), state)

# Layer normalisation: sizes, the last of which are normalised together.
for sizes, dims, affine in itertools.product([(3, 4), (2, 3, 5), (2, 1100), (6,), (0, 4), (2, 7)], (1, 2), (0, 1, 2)):
    if dims > len(sizes) or (sizes == (2, 1100) and affine + dims != 3):
        continue
    shape = sizes[len(sizes) - dims:]
    for dtype, eps in ((torch.float32, 1e-5), (torch.float64, 0.1)):
        if len(shape) and shape[-1] == 1100 and dtype == torch.float64:
            continue
        x = numbers(sizes, dtype) + 10
        own = [numbers(shape, dtype) for _ in range(affine)]
        case("layer_norm", [shape, eps], [x, *own],
             lambda x, weight=None, bias=None: F.layer_norm(x, shape, weight, bias, eps))

for approximate, dtype in itertools.product(("none", "tanh"), (torch.float32, torch.float64)):
    x = torch.cat([torch.linspace(-12, 12, 97, dtype=dtype), torch.tensor([0.0, -0.0, 1e-30, NAN], dtype=dtype)])
    case("gelu", [approximate], [x], lambda x: F.gelu(x, approximate=approximate))

# Activations, also where they hardly differ from 0 or from x.
for dtype in (torch.float32, torch.float64):
    x = torch.cat([torch.linspace(-30, 30, 97, dtype=dtype),
                   torch.tensor([0.0, -0.0, 1e-30, -80, 200, INF, -INF, NAN], dtype=dtype)])
    for beta, threshold in ((1, 20), (2.5, 1), (0.1, 20), (1, 1000), (-0.5, 3)):
        case("softplus", [float(beta), float(threshold)], [x], lambda x: F.softplus(x, beta, threshold))
    case("silu", [], [x], F.silu)
    for slope in (0.01, 0.3, 0, -1.5):
        case("leaky_relu", [float(slope)], [x], lambda x: F.leaky_relu(x, slope))
for sizes in ((), (0,), (2, 3)):
    case("leaky_relu", [0.1], [numbers(sizes, torch.float64)], lambda x: F.leaky_relu(x, 0.1))
    case("silu", [], [numbers(sizes, torch.float64)], F.silu)
    case("softplus", [1.0, 20.0], [numbers(sizes, torch.float32)], F.softplus)

# Embeddings: rows that are named once, several times, never, and one that is not learned.
for sizes, named, padding in itertools.product([(5, 3), (4, 1), (3, 0)], [(), (7,), (2, 4), (0,), (2, 0)], [None, 0, -2]):
    for dtype in (torch.float32, torch.float64):
        index = torch.randint(0, sizes[0], named)
        case("embedding", [padding], [index.to(torch.int32 if padding == 0 else torch.int64), numbers(sizes, dtype)],
             lambda index, weight: F.embedding(index, weight, padding))

# Running sums.
for sizes, dim in [((), 0), ((0,), 0), ((1,), 0), ((31,), 0), ((32,), 0), ((33,), -1), ((1100,), 0), ((2, 70, 3), 1),
                   ((5, 40), -1), ((40, 5), 0), ((0, 3), 1), ((3, 0), 1)]:
    for dtype in (torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8):
        x = numbers(sizes, dtype) if dtype.is_floating_point else torch.randint(0, 9, sizes).to(dtype)
        case("cumsum", [dim], [x], lambda x: x.cumsum(dim))
case("cumsum", [0], [torch.tensor([1, INF, 2, -INF, 3, NAN, 1])], lambda x: x.cumsum(0))

# What is taken along a dimension; indices are broadcast, and count on beyond the ends.
for sizes, taken, dim in [((3, 4), (2, 4), 0), ((3, 4), (1, 4), -2), ((3, 4), (3, 1), 1), ((1, 4), (3, 2), 1),
                          ((2, 1, 5), (1, 3, 7), -1), ((3, 4), (3, 0), 1), ((0, 4), (0, 4), 0), ((5,), (3,), 0),
                          ((3, 4), (2, 2), None), ((), (2,), None), ((), (), None), ((4, 1), (0,), None)]:
    for dtype in (torch.float32, torch.int64):
        x = torch.randint(-9, 9, sizes).to(dtype)
        index = torch.randint(-12, 12, taken) if dim is not None else torch.randint(0, max(x.numel(), 1), taken)
        case("take_along_dim", [dim], [x, index], lambda x, index: torch.take_along_dim(x, index, dim))

print(json.dumps({"torch": torch.__version__.split("+")[0], "cases": cases}, separators=(",", ":"))
      .replace('{"name"', '\n{"name"'))
