"""The norms, pools, convolutions and paddings of `torch.nn.functional` that are computed from other operations."""

import math
import warnings

import _torch
from _torch import zeros

from .._operation import composed


def _not_here(what):
    return AttributeError(f"{what} is not here: PyTorch has it, this course does not")


def _one(size):
    return size if isinstance(size, int) else tuple(size)[0]


def _pair(size):
    return (size, size) if isinstance(size, int) else tuple(size)


def _by_channel(input, p, training, inplace):
    """Dropout of whole channels, which are the second dimension: one random number for each."""
    if p < 0 or p > 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    if not training or p == 0 or input.numel() == 0:
        return input
    noise = _torch.ones((*input.shape[:2], *(1 for _ in input.shape[2:])), dtype=input.dtype, device=input.device)
    noise = _torch.F_dropout(noise, p, True)
    return input.mul_(noise) if inplace else input * noise


def dropout1d(input, p=0.5, training=True, inplace=False):
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to provide "
            "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension "
            "(i.e. 2D or 3D inputs)."
        )
    if input.dim() == 3:
        return _by_channel(input, p, training, inplace)
    return _by_channel(input.unsqueeze(0), p, training, inplace).squeeze(0)


def dropout2d(input, p=0.5, training=True, inplace=False):
    if input.dim() not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will result in an error in a "
            "future release. To retain the behavior and silence this warning, please use dropout instead. Note that dropout2d "
            "exists to provide channel-wise dropout on inputs with 2 spatial dimensions, a channel dimension, and an optional "
            "batch dimension (i.e. 3D or 4D inputs).",
            stacklevel=2,
        )
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is "
            "interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to "
            "interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout "
            "behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _by_channel(input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    if input.dim() not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will result in an error in a "
            "future release. To retain the behavior and silence this warning, please use dropout instead. Note that dropout3d "
            "exists to provide channel-wise dropout on inputs with 3 spatial dimensions, a channel dimension, and an optional "
            "batch dimension (i.e. 4D or 5D inputs).",
            stacklevel=2,
        )
    if input.dim() == 4:
        return _by_channel(input.unsqueeze(0), p, training, inplace).squeeze(0)
    return _by_channel(input, p, training, inplace)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    if input.size(1) % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(input.shape)} "
            f"and num_groups={num_groups}"
        )
    channels = (1, input.size(1)) + (1,) * (input.dim() - 2)

    def normed(x, *affine):
        groups = x.reshape(x.size(0), num_groups, -1)
        y = _torch.F_layer_norm(groups, (groups.size(2),), None, None, eps).view(x.shape)
        affine = iter(affine)
        if weight is not None:
            y = y * next(affine).view(channels)
        return y + next(affine).view(channels) if bias is not None else y

    return composed("NativeGroupNormBackward0", normed, input, *(x for x in (weight, bias) if x is not None))


def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
):
    if running_mean is not None or running_var is not None or not use_input_stats:
        raise _not_here("instance_norm with running statistics")
    batch, channels = input.shape[:2]
    repeated = [x if x is None else x.repeat(batch) for x in (weight, bias)]
    x = input.contiguous().view(1, batch * channels, *input.shape[2:])
    return _torch.F_batch_norm(x, None, None, *repeated, True, momentum, eps).view(input.shape)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    dims = list(range(-len(normalized_shape), 0))
    if tuple(input.shape[-len(dims) :]) != tuple(normalized_shape):
        raise RuntimeError(f"Given normalized_shape={list(normalized_shape)}, expected input with shape [*, {list(normalized_shape)[0]}]")
    eps = 1.1920928955078125e-07 if eps is None else eps
    y = input * (input.pow(2).mean(dims, keepdim=True) + eps).rsqrt()
    return y if weight is None else y * weight


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """A convolution of images that are one pixel high."""
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"Expected 2D (unbatched) or 3D (batched) input to conv1d, but got input of size: {list(input.shape)}"
        )
    if input.dim() == 2:
        return conv1d(input.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
    padding = padding if isinstance(padding, str) else (0, _one(padding))

    def convolved(x, w, *b):
        y = _torch.F_conv2d(
            x.unsqueeze(-2), w.unsqueeze(-2), b[0] if b else None, (1, _one(stride)), padding, (1, _one(dilation)), groups
        )
        return y.squeeze(-2)

    return composed("ConvolutionBackward0", convolved, input, weight, *(() if bias is None else (bias,)))


def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """A convolution of the pixels with zeros between them, by the flipped kernel."""
    if groups != 1 or _pair(dilation) != (1, 1):
        raise _not_here("conv_transpose2d with groups or dilation")
    stride, padding, extra = _pair(stride), _pair(padding), _pair(output_padding)
    kernel = weight.shape[2:]
    if input.dim() != 4:
        raise _not_here("conv_transpose2d without a batch")
    if any(size - 1 < cut for size, cut in zip(kernel, padding)):
        raise _not_here("conv_transpose2d with a padding as large as the kernel")
    if any(e >= s for e, s in zip(extra, stride)):
        raise RuntimeError(
            f"output padding must be smaller than either stride or dilation, but got output_padding_height: {extra[0]} "
            f"output_padding_width: {extra[1]} stride_height: {stride[0]} stride_width: {stride[1]} dilation_height: 1 "
            "dilation_width: 1"
        )

    def convolved(x, w, *b):
        for dim, step in ((2, stride[0]), (3, stride[1])):
            if step > 1:  # zeros after each pixel, but the last
                gaps = list(x.shape)
                rows = x.unsqueeze(dim + 1)
                gaps.insert(dim + 1, step - 1)
                x = _torch.cat([rows, zeros(gaps, dtype=x.dtype, device=x.device)], dim + 1)
                x = x.flatten(dim, dim + 1).narrow(dim, 0, x.size(dim) * step - step + 1)
        top, left = kernel[0] - 1 - padding[0], kernel[1] - 1 - padding[1]
        x = _padded(x, (left, left + extra[1], top, top + extra[0]), 0.0)
        return _torch.F_conv2d(x, w.flip((2, 3)).transpose(0, 1), b[0] if b else None)

    return composed("ConvolutionBackward0", convolved, input, weight, *(() if bias is None else (bias,)))


def _padded(x, pad, value):
    """`x` between elements of a value. A negative width cuts."""
    for i in range(len(pad) // 2):
        dim, (before, after) = x.dim() - 1 - i, pad[2 * i : 2 * i + 2]
        if before < 0:
            x, before = x.narrow(dim, -before, x.size(dim) + before), 0
        if after < 0:
            x, after = x.narrow(dim, 0, x.size(dim) + after), 0
        border = lambda width: _torch.full(
            (*x.shape[:dim], width, *x.shape[dim + 1 :]), value, dtype=x.dtype, device=x.device
        )
        parts = [border(before)] * (before > 0) + [x] + [border(after)] * (after > 0)
        x = _torch.cat(parts, dim) if len(parts) > 1 else x
    return x


def pad(input, pad, mode="constant", value=None):
    if mode != "constant":
        raise _not_here(f"pad with mode={mode!r}")
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) // 2 > input.dim():
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length {len(pad)} "
            f"and input of dimension {input.dim()}"
        )
    value = 0 if value is None else value
    value = bool(value) if input.dtype == _torch.bool else value
    return composed("ConstantPadNdBackward0", lambda x: _padded(x, pad, value).clone(), input)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    if return_indices:
        raise _not_here("return_indices=True")
    step = _one(kernel_size if stride is None else stride)
    y = _torch.F_max_pool2d(
        input.unsqueeze(-2), (1, _one(kernel_size)), (1, step), (0, _one(padding)), (1, _one(dilation)), ceil_mode
    )
    return y.squeeze(-2)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    step = _one(kernel_size if stride is None else stride)
    y = _torch.F_avg_pool2d(
        input.unsqueeze(-2), (1, _one(kernel_size)), (1, step), (0, _one(padding)), ceil_mode, count_include_pad
    )
    return y.squeeze(-2)


def adaptive_avg_pool1d(input, output_size):
    return _torch.F_adaptive_avg_pool2d(input.unsqueeze(-2), (1, _one(output_size))).squeeze(-2)


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False
):
    if mode != "nearest" or antialias or recompute_scale_factor:
        raise _not_here(f"interpolate with mode={mode!r}, antialias or recompute_scale_factor")
    if input.dim() not in (3, 4):
        raise _not_here(f"interpolate of a tensor with {input.dim()} dimensions")
    count = input.dim() - 2
    if (size is None) == (scale_factor is None):
        raise ValueError("only one of size or scale_factor should be defined")
    each = lambda value: (value,) * count if isinstance(value, (int, float)) else tuple(value)
    sizes = each(size) if size is not None else [math.floor(s * f) for s, f in zip(input.shape[2:], each(scale_factor))]
    ratios = [s / n for s, n in zip(input.shape[2:], sizes)] if size is not None else [1 / f for f in each(scale_factor)]

    def nearest(x):
        for i, (count, ratio) in enumerate(zip(sizes, ratios)):
            places = [min(int(place * ratio), x.size(2 + i) - 1) for place in range(count)]
            x = x.index_select(2 + i, _torch.tensor(places, device=x.device))
        return x

    return composed(f"UpsampleNearest{count}DBackward0", nearest, input)


def pixel_shuffle(input, upscale_factor):
    r = upscale_factor
    *batch, channels, height, width = input.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={channels} is not divisible by {r * r}"
        )

    def shuffled(x):
        x = x.reshape(-1, channels // (r * r), r, r, height, width).permute(0, 1, 4, 2, 5, 3)
        return x.reshape(*batch, channels // (r * r), height * r, width * r)

    return composed("PixelShuffleBackward0", shuffled, input)


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    if enable_gqa:
        raise _not_here("enable_gqa=True")
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if is_causal:
        attn_mask = _torch.ones(query.size(-2), key.size(-2), dtype=_torch.bool, device=query.device).tril()
    if attn_mask is not None and attn_mask.dtype == _torch.bool:
        allowed = attn_mask
        attn_mask = zeros(allowed.shape, dtype=query.dtype, device=query.device).masked_fill_(allowed.logical_not(), -math.inf)
    root = math.sqrt(1 / math.sqrt(query.size(-1)) if scale is None else scale)

    def attended(q, k, v):
        scores = (q * root).matmul(k.transpose(-2, -1) * root)
        scores = scores if attn_mask is None else scores + attn_mask
        weights = scores.softmax(-1)
        if attn_mask is not None:  # a row without any key gives 0
            weights = weights.masked_fill(scores.detach().amax(-1, keepdim=True) == -math.inf, 0)
        weights = _torch.F_dropout(weights, dropout_p, True) if dropout_p > 0 else weights
        return weights.matmul(v)

    is_fused = query.dim() == 4 and dropout_p == 0 and not query.is_cuda
    name = "ScaledDotProductFlashAttentionForCpuBackward0" if is_fused else "UnsafeViewBackward0"
    return composed(name, attended, query, key, value)
