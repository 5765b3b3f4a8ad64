"""The losses of `torch.nn.functional` that are computed from other operations."""

import math
import warnings

import _torch
from _torch import Tensor, float64, where

from .._elementwise import _log1p
from .._operation import composed, expect_floats, fp32, kind_of, operation

_BY_REDUCTION = {"none": lambda x: x, "mean": lambda x: x.mean(), "sum": lambda x: x.sum()}


def _reduced(loss, reduction):
    if reduction not in _BY_REDUCTION:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _BY_REDUCTION[reduction](loss)


def legacy_reduction(reduction, size_average, reduce):
    """The reduction that the old arguments mean."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        reduction = "none"
    else:
        reduction = "sum" if size_average is False else "mean"
    warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=3)
    return reduction


def _check_sizes(input, target, name):
    if target.shape != input.shape:
        raise AttributeError(f"{name} of tensors with different sizes is not here: PyTorch has it, this course does not")


def _check_target(name, target):
    if isinstance(target, Tensor) and target.requires_grad:
        raise AttributeError(f"{name} with a gradient of the target is not here: PyTorch has it, this course does not")


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    reduction = legacy_reduction(reduction, size_average, reduce)
    if input.device.type in ("cpu", "cuda") and _torch.is_autocast_enabled(input.device.type) and input.is_cuda:
        raise RuntimeError(
            "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\nMany models use a sigmoid layer "
            "right before the binary cross entropy layer.\nIn this case, combine the two layers using "
            "torch.nn.functional.binary_cross_entropy_with_logits\nor torch.nn.BCEWithLogitsLoss.  "
            "binary_cross_entropy_with_logits and BCEWithLogits are\nsafe to autocast."
        )
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    _check_target("binary_cross_entropy", target)
    if target.dtype != input.dtype:
        raise RuntimeError(f"Found dtype {kind_of(target)} but expected {kind_of(input)}")

    def forward(x, y, *weight):
        if bool(((x < 0) | (x > 1)).any()):
            raise RuntimeError("all elements of input should be between 0 and 1")
        log1p = _log1p(-x.to(float64)).to(x.dtype)
        loss = (y - 1) * log1p.clamp_min(-100) - y * x.log().clamp_min(-100)
        return _reduced(loss * weight[0] if weight else loss, reduction)

    def backward(grad, result, x, y, *weight):
        grad = grad * (x - y) / ((1 - x) * x).clamp_min(1e-12)
        grad = grad * weight[0] if weight else grad
        return [grad / x.numel() if reduction == "mean" else grad, None, *(None for _ in weight)]

    return operation("BinaryCrossEntropyBackward0", forward, backward, input, target, *(() if weight is None else (weight,)))


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    reduction = legacy_reduction(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    _check_target("binary_cross_entropy_with_logits", target)
    input, target, weight, pos_weight = fp32(input, target, weight, pos_weight)
    expect_floats("log_sigmoid_cpu", input)
    weights = [x for x in (weight, pos_weight) if x is not None]

    def forward(x, y, *_):
        log_sigmoid = _log_sigmoid(x)
        if pos_weight is not None:
            log_sigmoid = log_sigmoid * ((pos_weight - 1) * y + 1)
        loss = (1 - y) * x - log_sigmoid
        return _reduced(loss if weight is None else loss * weight, reduction)

    def backward(grad, result, x, y, *_):
        if pos_weight is not None:
            t = pos_weight * y
            own = (t + 1 - y) * x.sigmoid() - t
        else:
            own = x.sigmoid() - y
        grad = own * grad
        grad = grad if weight is None else grad * weight
        return [grad / x.numel() if reduction == "mean" else grad, *(None for _ in (y, *_))]

    return operation("BinaryCrossEntropyWithLogitsBackward0", forward, backward, input, target, *weights)


def _log_sigmoid(x):
    return x.clamp_max(0) - _log1p((-x.abs()).exp().to(float64)).to(x.dtype)


def logsigmoid(input):
    expect_floats("log_sigmoid_cpu", input)

    def backward(grad, result, x):
        z = (-x.abs()).exp()
        negative = x < 0
        return (where(negative, 1.0, 0.0) - where(negative, 1.0, -1.0) * (z / (1 + z))) * grad

    return operation("LogSigmoidBackward0", _log_sigmoid, backward, input)


def _of_the_difference(name, node, input, target, reduction, of, slope):
    """A loss of `input - target`: its value from the absolute difference, and its gradient from the difference."""
    input, target = fp32(input, target)
    _check_sizes(input, target, name)
    if input.dtype != target.dtype:
        both = input.detach().reshape(-1)[:1] + target.detach().reshape(-1)[:1]
        if name == "huber_loss" and not input.is_floating_point():
            raise RuntimeError(f"result type {kind_of(both)} can't be cast to the desired output type {kind_of(input)}")
        input, target = input.to(both.dtype), target.to(both.dtype)
    expect_floats(name.replace("_loss", "_cpu"), input)

    def backward(grad, result, x, y):
        norm = 1.0 / x.numel() if reduction == "mean" else 1.0
        grad = slope(x - y, norm, grad)
        return [grad, -grad]

    return operation(node, lambda x, y: _reduced(of((x - y).abs()), reduction), backward, input, target)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    reduction = legacy_reduction(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return _torch.F_l1_loss(input, target, reduction=reduction)
    return _of_the_difference(
        "smooth_l1_loss", "SmoothL1LossBackward0", input, target, reduction,
        lambda z: where(z < beta, 0.5 * z * z / beta, z - 0.5 * beta),
        lambda x, norm, grad: where(x <= -beta, -norm * grad, where(x >= beta, norm * grad, norm * x * grad / beta)),
    )


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    if weight is not None:
        raise AttributeError("huber_loss with weight is not here: PyTorch has it, this course does not")
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    return _of_the_difference(
        "huber_loss", "HuberLossBackward0", input, target, reduction,
        lambda z: where(z <= delta, 0.5 * z * z, delta * (z - 0.5 * delta)),
        lambda x, norm, grad: where(x <= -delta, -norm * grad * delta, where(x >= delta, norm * grad * delta, norm * x * grad)),
    )


def _xlogy(x):
    return where(x == 0, 0.0, x * x.log())


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    reduction = legacy_reduction(reduction, size_average, reduce)
    input, target = fp32(input, target)
    if not (input.is_floating_point() and target.is_floating_point()):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        loss = target.exp() * (target - input)
    else:
        of_target = composed("XlogyBackward0", _xlogy, target) if target.requires_grad else _xlogy(target)
        loss = of_target - target * input
    if reduction == "batchmean" and input.dim() != 0:
        return loss.sum() / input.size(0)
    return _reduced(loss, "sum" if reduction == "batchmean" else reduction)


def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    reduction = legacy_reduction(reduction, size_average, reduce)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduced(loss, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    if isinstance(var, (int, float)):
        var = input * 0 + var if input.requires_grad else _torch.full_like(input, var)
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif not (input.shape[:-1] == var.shape[:-1] and var.size(-1) == 1):
            raise ValueError("var is of incorrect size")
    if bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    # The limit has no gradient.
    var = var + (var.detach().clamp_min(eps) - var.detach())
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    reduction = legacy_reduction(reduction, size_average, reduce)

    def backward(grad, result, x, y):
        z = (-y * x).exp()
        norm = 1.0 / x.numel() if reduction == "mean" else 1.0
        return [-norm * y * z / (1 + z) * grad, None]

    return operation(
        "SoftMarginLossBackward0", lambda x, y: _reduced(_log1p((-y * x).exp()), reduction), backward, input, target
    )


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    reduction = legacy_reduction(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return _reduced(clamp_min(-target * (input1 - input2) + margin, 0), reduction)


def clamp_min(x, least):
    """`x.clamp_min(least)` with the name of its node."""
    return composed("ClampMinBackward0", lambda x: x.clamp_min(least), x)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    reduction = legacy_reduction(reduction, size_average, reduce)
    loss = where(target != 1, clamp_min(margin - input, 0), 0.0) + where(target != -1, input, 0.0)
    return _reduced(loss, reduction)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    reduction = legacy_reduction(reduction, size_average, reduce)
    if target.dim() not in (0, 1) or input1.dim() != target.dim() + 1 or input2.dim() != target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    input1, input2 = fp32(input1, input2)
    product = (input1 * input2).sum(-1)
    squares = ((input1 * input1).sum(-1) + 1e-12) * ((input2 * input2).sum(-1) + 1e-12)
    cosine = product / squares.sqrt()
    loss = where(target == 1, 1 - cosine, 0.0) + where(target == -1, clamp_min(cosine - margin, 0), 0.0)
    return _reduced(loss, reduction)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    x1, x2 = fp32(x1, x2)
    shape = (x1.detach()[:0] if x1.dim() == 0 else x1.detach() + x2.detach()).shape
    x1, x2 = x1.expand(shape), x2.expand(shape)
    return (_unit(x1, dim, eps) * _unit(x2, dim, eps)).sum(dim)


def _unit(x, dim, eps):
    norm = x.norm(2, dim, keepdim=True)
    # The limit has no gradient.
    return x / (norm + (norm.detach().clamp_min(eps) - norm.detach()))


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    return composed("NormBackward1", lambda x: x.norm(p, -1, keepdim), x1 - x2 + eps)


def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"
):
    reduction = legacy_reduction(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    return _reduced(clamp_min(margin + near - far, 0), reduction)
