# What PyTorch 2.11 says of convolutions: `python conv.py > conv.json`. Numbers that go in are made by a formula that
# the test has too.
import json

import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)


def numbers(sizes, seed):
    count = torch.Size(sizes).numel()
    values = [((i + 1) * (7919 + 2 * seed)) % 10007 / 10007 - 0.5 for i in range(count)]
    return torch.tensor(values, dtype=torch.float64).reshape(sizes)


def values(x, weight, bias, **options):
    x, weight = numbers(x, 0).requires_grad_(), numbers(weight, 1).requires_grad_()
    bias = numbers([weight.shape[0]], 2).requires_grad_() if bias else None
    y = F.conv2d(x, weight, bias, **options)
    y.backward(numbers(y.shape, 3))
    results = [y, x.grad, weight.grad] + ([bias.grad] if bias is not None else [])
    return {"x": list(x.shape), "weight": list(weight.shape), "bias": bias is not None, "options": options,
            "results": [[list(result.shape), result.flatten().tolist()] for result in results],
            "grad_fn": type(y.grad_fn).__name__}


def error(x, weight, bias=None, types="fff", **options):
    dtypes = {"f": torch.float32, "d": torch.float64, "h": torch.float16, "b": torch.bfloat16, "l": torch.int64}
    make = lambda sizes, letter: torch.zeros(sizes).to(dtypes[letter])
    try:
        F.conv2d(make(x, types[0]), make(weight, types[1]), None if bias is None else make(bias, types[2]), **options)
    except RuntimeError as message:
        return {"x": x, "weight": weight, "bias": bias, "types": types, "options": options, "message": str(message)}
    raise SystemExit(f"no error: {x} {weight}")


def layer(*arguments, **options):
    return {"arguments": list(arguments), "options": options, "repr": str(nn.Conv2d(*arguments, **options))}


def layer_error(*arguments, **options):
    try:
        nn.Conv2d(*arguments, **options)
    except ValueError as message:
        return {"arguments": list(arguments), "options": options, "message": str(message)}
    raise SystemExit(f"no error: {arguments}")


def losses(shrink):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), shrink(32), nn.Conv2d(32, 64, 3, padding=1),
                          nn.ReLU(), shrink(64), nn.Flatten(), nn.Linear(64 * 8 * 8, 10))
    x, y = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    result = []
    for _ in range(5):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        result.append(loss.item())
    return result


print(json.dumps({
    "values": [
        values([2, 3, 5, 6], [4, 3, 3, 3], True),
        values([3, 5, 6], [4, 3, 3, 3], True, padding=1),
        values([3, 5, 6], [4, 3, 3, 3], False, padding="same"),
        values([2, 3, 5, 6], [4, 3, 3, 5], False, padding="same"),
        values([2, 2, 5, 6], [3, 2, 2, 4], True, padding="same"),
        values([2, 2, 7, 8], [3, 2, 2, 4], True, padding="same", dilation=[3, 1]),
        values([2, 2, 7, 8], [3, 2, 2, 4], True, padding="valid", stride=[2, 3]),
        values([2, 4, 9, 8], [6, 2, 3, 2], True, padding=[2, 1], stride=[2, 1], dilation=[1, 2], groups=2),
        values([2, 4, 6, 6], [8, 1, 3, 3], True, padding=1, stride=2, groups=4),
        values([2, 4, 3, 3], [5, 4, 1, 1], True, padding=1, stride=3),
        values([0, 3, 5, 5], [4, 3, 3, 3], True),
    ],
    "errors": [
        error([2, 1, 5, 5], [4, 3, 3, 3]),
        error([2, 4, 5, 5], [4, 3, 3, 3], groups=2),
        error([1, 5, 5], [4, 3, 3, 3]),
        error([0, 2, 5, 5], [4, 3, 3, 3]),
        error([2, 3, 2, 5], [4, 3, 3, 3]),
        error([2, 3, 2, 5], [4, 3, 3, 3], padding=[1, 0], dilation=[2, 3]),
        error([5, 5], [4, 3, 3, 3]),
        error([1, 2, 3, 5, 5], [4, 3, 3, 3]),
        error([2, 3, 5, 5], [4, 3]),
        error([2, 3, 5, 5], [4, 3, 3]),
        error([2, 3, 5, 5], [4, 3, 3, 3, 3]),
        error([2, 3, 5, 5], [4, 3, 3, 3], [3]),
        error([2, 3, 5, 5], [4, 3, 3, 3], [4, 1]),
        error([2, 3, 5, 5], [4, 3, 3, 3], []),
        error([2, 4, 5, 5], [5, 2, 3, 3], groups=2),
        error([2, 4, 5, 5], [1, 2, 3, 3], groups=2),
        error([2, 3, 5, 5], [0, 3, 3, 3]),
        error([2, 4, 5, 5], [4, 2, 3, 3], groups=0),
        error([2, 3, 5, 5], [4, 3, 3, 3], stride=[1, 0]),
        # Of more than one image it says "non-positive dilation is not supported".
        error([1, 3, 5, 5], [4, 3, 3, 3], dilation=[0, 1]),
        error([1, 2, 5, 5], [4, 3, 3, 3], dilation=[0, 1]),
        error([1, 3, 2, 5], [4, 3, 3, 3], dilation=[1, 0]),
        error([1, 3, 5, 5], [4, 3, 3, 3], types="fd", dilation=0),
        error([2, 2, 5, 5], [4, 3, 3, 3], stride=0, dilation=0, groups=0),
        error([2, 3, 5, 5], [4, 3, 3, 3], stride=2, padding="same"),
        error([2, 3, 0, 5], [4, 3, 3, 3]),
        error([2, 3, 0, 5], [4, 3, 3, 3], padding=2),
        error([2, 3, 5, 5], [4, 3, 3, 3], types="fd"),
        error([2, 3, 5, 5], [4, 3, 3, 3], types="fl"),
        error([2, 3, 5, 5], [4, 3, 3, 3], types="df"),
        error([2, 3, 5, 5], [4, 3, 3, 3], types="lf"),
        error([2, 3, 5, 5], [4, 3, 3, 3], types="bf"),
        error([2, 3, 5, 5], [4, 3, 3, 3], types="fb"),
        error([2, 3, 5, 5], [4, 3, 3, 3], types="bh"),
        error([2, 3, 5, 5], [4, 3, 3, 3], types="hf"),
        error([2, 3, 5, 5], [4, 3, 3, 3], types="db"),
        error([1, 3, 5, 5], [4, 3, 0, 3]),
        error([2, 3, 5, 5], [4, 3, 3, 3], [4], types="ffd"),
        error([2, 2, 5, 5], [4, 3, 3, 3], [4], types="lff"),
        error([2, 2, 5, 5], [4, 3, 3, 3], [3]),
        error([2, 3, 1, 5], [4, 3, 3, 3], [3]),
    ],
    "layers": [
        layer(1, 2, 3, padding=1),
        layer(1, 2, 3),
        layer(4, 2, [3, 5], stride=[2, 1], padding=[0, 2], dilation=[1, 3], groups=2, bias=False),
        layer(4, 2, 3, padding="same"),
        layer(4, 2, 3, padding="valid", dilation=2),
        layer(6, 6, 3, groups=6),
    ],
    "layer_errors": [
        layer_error(3, 4, 3, groups=2),
        layer_error(4, 3, 3, groups=2),
        layer_error(4, 4, 3, groups=0),
        layer_error(4, 4, 3, stride=2, padding="same"),
    ],
    "losses": {
        "convolution": losses(lambda channels: nn.Conv2d(channels, channels, 2, stride=2, groups=channels // 4)),
        "pool": losses(lambda channels: nn.MaxPool2d(2)),
    },
}))
