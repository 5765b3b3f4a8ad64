"""Attention, norms, convolutions and paddings."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)


def short(x):
    """Sums of products and their order differ between libraries, so few digits are printed."""
    return tuple(x.shape), " ".join(f"{value:.2f}" for value in x.flatten().tolist()[:40]).replace("-0.00", "0.00")


def show(y, *leaves):
    print(y.grad_fn.name(), short(y))
    for leaf in leaves:
        leaf.grad = None
    y.sin().sum().backward()
    for leaf in leaves:
        print(short(leaf.grad))


x = torch.randn(5, 2, 4, requires_grad=True)
attention = nn.MultiheadAttention(4, 2)
print(attention, [(name, tuple(p.shape)) for name, p in attention.named_parameters()])
output, weights = attention(x, x, x)
show(output, x)
print(weights)
y = torch.randn(3, 2, 4)
print(short(attention(y, x, x)[0]), short(attention(y, x, y[:1].repeat(5, 1, 1), need_weights=False)[0]))
mask = torch.ones(5, 5, dtype=torch.bool).triu(1)
print(attention(x, x, x, attn_mask=mask)[1])
padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
print(attention(x, x, x, key_padding_mask=padding, average_attn_weights=False)[1].shape, attention(x, x, x, key_padding_mask=padding)[1])
print(nn.MultiheadAttention(4, 2, batch_first=True)(x, x, x)[0].shape)

q = torch.randn(2, 3, 5, 4, requires_grad=True)
show(F.scaled_dot_product_attention(q, q, q), q)
show(F.scaled_dot_product_attention(q, q, q, is_causal=True), q)
print(short(F.scaled_dot_product_attention(q, q, q, attn_mask=~mask)[0, 0]))

layer = nn.TransformerEncoderLayer(4, 2, 8)
print(layer)
torch.manual_seed(4)
show(layer(x), x)
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, activation="gelu", batch_first=True, norm_first=True), 2, enable_nested_tensor=False)
show(encoder(x), x)
print(len(list(encoder.parameters())))

image = torch.randn(2, 4, 3, 3, requires_grad=True)
for module in (
    nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.ZeroPad2d(1), nn.ConstantPad2d((1, 0, 2, -1), 0.5), nn.PixelShuffle(2),
    nn.Upsample(scale_factor=2), nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, output_padding=1), nn.ConvTranspose2d(4, 3, 2, bias=False),
    nn.Dropout2d(0.5),
):
    print(module)
    show(module(image), image)
    print([short(parameter.grad) for parameter in module.parameters()])
line = torch.randn(2, 4, 6, requires_grad=True)
for module in (
    nn.Conv1d(4, 3, 3, stride=2, padding=1), nn.Conv1d(4, 4, 2, groups=2, dilation=2, bias=False), nn.MaxPool1d(2), nn.AvgPool1d(3, 1, 1),
    nn.AdaptiveAvgPool1d(2), nn.InstanceNorm1d(4), nn.Dropout1d(0.5), nn.GroupNorm(4, 4, affine=False),
):
    print(module)
    show(module(line), line)
    print([short(parameter.grad) for parameter in module.parameters()])
show(F.pad(line[0, 0], (1, 2), value=3.0), line)
show(F.interpolate(line, size=9), line)
print(nn.RMSNorm(6)(line.detach()))
parameters = nn.ParameterDict({"a": torch.ones(2), "b": nn.Parameter(torch.zeros(1))})
print(sorted(parameters.keys()), parameters["a"], "b" in parameters, len(list(parameters.parameters())))

from torch.utils.checkpoint import checkpoint

block = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 4))
torch.manual_seed(1)
show(checkpoint(block, x, use_reentrant=False), x)
first = x.grad
torch.manual_seed(1)
show(block(x), x)
print(torch.equal(first, x.grad))
