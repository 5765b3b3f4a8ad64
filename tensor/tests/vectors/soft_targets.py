# PyTorch 2.11's cross entropies with soft targets, and their gradients, on the CPU: `python soft_targets.py > soft_targets.json`.
import itertools
import json

import torch
import torch.nn.functional as F

torch.manual_seed(0)


def as_json(tensor):
    if tensor is None:
        return None
    values = [v if v == v else None for v in tensor.detach().flatten().tolist()]
    return {"sizes": list(tensor.shape), "values": values, "dtype": str(tensor.dtype).removeprefix("torch.")}


def targets(sizes):
    classes_dim = min(len(sizes) - 1, 1)
    yield torch.rand(sizes).softmax(classes_dim), -100
    if len(sizes) == 2:
        yield torch.rand(sizes, dtype=torch.float64), -100
    indices = torch.randint(3, [n for dim, n in enumerate(sizes) if dim != classes_dim])
    yield indices, -100
    yield indices, 1


cases = []
for sizes, dtype in [([3], torch.float32), ([4, 3], torch.float32), ([4, 3], torch.float64), ([2, 3, 2], torch.float32),
                     ([2, 3, 2, 2], torch.float32), ([0, 3], torch.float32)]:
    for (target, ignore_index), weighted, smoothing, reduction in itertools.product(
            list(targets(sizes)), [False, True], [0.0, 0.1, 1.0], ["mean", "sum", "none"]):
        if not target.is_floating_point() and smoothing == 0.0:
            continue
        scores = torch.randn(sizes, dtype=dtype).requires_grad_()
        target = target.detach().clone().requires_grad_(target.is_floating_point())
        weight = torch.tensor([0.5, 2.0, 1.25], dtype=dtype) if weighted else None
        loss = F.cross_entropy(scores, target, weight, ignore_index=ignore_index, reduction=reduction,
                               label_smoothing=smoothing)
        loss.sum().backward()
        cases.append({
            "scores": as_json(scores), "target": as_json(target), "weight": as_json(weight), "reduction": reduction,
            "ignore_index": ignore_index, "label_smoothing": smoothing, "node": loss.grad_fn.name(),
            "loss": as_json(loss), "gradients": [as_json(scores.grad), as_json(target.grad)],
        })
print(json.dumps({"pytorch": torch.__version__, "cases": cases}).replace('{"scores"', '\n{"scores"'))
