"""Distances, norms, convolutions and paddings beyond those in `layers.py`."""

from _torch import empty, ones, zeros

from . import functional as F
from .layers import Dropout, Linear, _BatchNorm
from .module import Module
from .parameter import Parameter


class CosineSimilarity(Module):
    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1, x2):
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1, x2):
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class Dropout1d(Dropout):
    def forward(self, input):
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(Dropout):
    def forward(self, input):
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(Dropout):
    def forward(self, input):
        return F.dropout3d(input, self.p, self.training, self.inplace)


class GroupNorm(Module):
    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, bias=True):
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        options = {"device": device, "dtype": dtype}
        self.register_parameter("weight", Parameter(ones(num_channels, **options)) if affine else None)
        self.register_parameter("bias", Parameter(zeros(num_channels, **options)) if affine and bias else None)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class _InstanceNorm(_BatchNorm):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None
    ):
        if track_running_stats:
            raise AttributeError("track_running_stats of an InstanceNorm is not here: PyTorch has it, this course does not")
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input):
        if input.dim() not in self._dims:
            first, second = self._dims
            raise ValueError(f"expected {first}D or {second}D input (got {input.dim()}D input)")
        if input.dim() == self._dims[0]:
            return self.forward(input.unsqueeze(0)).squeeze(0)
        return F.instance_norm(input, weight=self.weight, bias=self.bias, eps=self.eps)


class InstanceNorm1d(_InstanceNorm):
    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    _dims = (3, 4)


class RMSNorm(Module):
    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        weight = Parameter(ones(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", weight)

    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class Conv1d(Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        padding_mode="zeros", device=None, dtype=None,
    ):
        super().__init__()
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode != "zeros":
            raise AttributeError(f"padding_mode={padding_mode!r} is not here: PyTorch has it, this course does not")
        one = lambda size: (size,) if isinstance(size, int) else tuple(size)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = one(kernel_size), one(stride), one(dilation)
        self.padding = padding if isinstance(padding, str) else one(padding)
        options = {"device": device, "dtype": dtype}
        self.weight = Parameter(empty((out_channels, in_channels // groups, *self.kernel_size), **options))
        self.register_parameter("bias", Parameter(empty(out_channels, **options)) if bias else None)
        Linear.reset_parameters(self)

    def forward(self, input):
        return F.conv1d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,):
            text += f", padding={self.padding}"
        if self.dilation != (1,):
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text if self.bias is not None else text + ", bias=False"


class ConvTranspose2d(Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1,
        padding_mode="zeros", device=None, dtype=None,
    ):
        super().__init__()
        pair = lambda size: (size, size) if isinstance(size, int) else tuple(size)
        if groups != 1 or pair(dilation) != (1, 1) or padding_mode != "zeros":
            raise AttributeError(
                "ConvTranspose2d with groups, dilation or padding_mode is not here: PyTorch has it, this course does not"
            )
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, pair(kernel_size)
        self.stride, self.padding, self.output_padding = pair(stride), pair(padding), pair(output_padding)
        options = {"device": device, "dtype": dtype}
        self.weight = Parameter(empty((in_channels, out_channels, *self.kernel_size), **options))
        self.register_parameter("bias", Parameter(empty(out_channels, **options)) if bias else None)
        Linear.reset_parameters(self)

    def forward(self, input):
        return F.conv_transpose2d(input, self.weight, self.bias, self.stride, self.padding, self.output_padding)

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0, 0):
            text += f", padding={self.padding}"
        if self.output_padding != (0, 0):
            text += f", output_padding={self.output_padding}"
        return text if self.bias is not None else text + ", bias=False"





class ConstantPad2d(Module):
    def __init__(self, padding, value):
        super().__init__()
        self.padding, self.value = (padding,) * 4 if isinstance(padding, int) else tuple(padding), value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ZeroPad2d(ConstantPad2d):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class Upsample(Module):
    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
        super().__init__()
        self.size, self.scale_factor, self.mode = size, float(scale_factor) if isinstance(scale_factor, int) else scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input):
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self):
        scale = f"scale_factor={self.scale_factor!r}" if self.scale_factor is not None else f"size={self.size!r}"
        return f"{scale}, mode={self.mode!r}"


class PixelShuffle(Module):
    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input):
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self):
        return f"upscale_factor={self.upscale_factor}"
