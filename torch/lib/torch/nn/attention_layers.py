"""Attention, and the encoder of a transformer."""

import math
from copy import deepcopy

import _torch
from _torch import empty

from . import functional as F
from . import init
from .containers import ModuleList
from .layers import Dropout, LayerNorm, Linear
from .module import Module
from .parameter import Parameter


def _refuse(given, what):
    if given:
        raise AttributeError(f"{what} is not here: PyTorch has it, this course does not")


def _additive(mask, like):
    """A mask that is added to scores: −∞ where a mask of truth values is true."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype != _torch.bool:
        raise RuntimeError("only bool and floating types of attn_mask are supported")
    return _torch.zeros_like(mask, dtype=like.dtype).masked_fill_(mask, -math.inf)


class NonDynamicallyQuantizableLinear(Linear):
    pass


class MultiheadAttention(Module):
    def __init__(
        self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None,
        batch_first=False, device=None, dtype=None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        _refuse(add_bias_kv, "add_bias_kv")
        _refuse(add_zero_attn, "add_zero_attn")
        _refuse(kdim not in (None, embed_dim) or vdim not in (None, embed_dim), "another size of keys or values")
        self.embed_dim, self.kdim, self.vdim, self.num_heads = embed_dim, embed_dim, embed_dim, num_heads
        self.dropout, self.batch_first, self.head_dim = dropout, batch_first, embed_dim // num_heads
        assert self.head_dim * num_heads == embed_dim, "embed_dim must be divisible by num_heads"
        options = {"device": device, "dtype": dtype}
        self.in_proj_weight = Parameter(empty((3 * embed_dim, embed_dim), **options))
        self.register_parameter("in_proj_bias", Parameter(empty(3 * embed_dim, **options)) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **options)
        init.xavier_uniform_(self.in_proj_weight)
        if bias:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)

    def forward(
        self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True,
        is_causal=False,
    ):
        _refuse(query.dim() != 3, "MultiheadAttention without a batch")
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        if self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        length, batch, size = query.shape
        if size != self.embed_dim:
            raise AssertionError(f"was expecting embedding dimension of {self.embed_dim}, but got {size}")
        q, k, v = self._projections(query, key, value)
        heads = lambda x: x.view(x.size(0), batch * self.num_heads, self.head_dim).transpose(0, 1)
        mask = self._mask(attn_mask, key_padding_mask, q, batch, k.size(0))
        p = self.dropout if self.training else 0.0
        if need_weights:
            scores = (heads(q) * math.sqrt(1.0 / self.head_dim)).bmm(heads(k).transpose(-2, -1))
            weights = (scores if mask is None else scores + mask).softmax(-1)
            weights = F.dropout(weights, p) if p > 0 else weights
            mixed = weights.bmm(heads(v)).transpose(0, 1)
        else:
            q, k, v = (heads(x).view(batch, self.num_heads, -1, self.head_dim) for x in (q, k, v))
            if mask is not None and mask.dim() == 3:
                mask = mask.view(batch, self.num_heads, -1, k.size(2)) if mask.size(0) > 1 else mask.unsqueeze(0)
            mixed, weights = F.scaled_dot_product_attention(q, k, v, mask, p).permute(2, 0, 1, 3), None
        output = self.out_proj(mixed.contiguous().view(length * batch, size)).view(length, batch, size)
        if need_weights:
            weights = weights.view(batch, self.num_heads, length, k.size(0))
            weights = weights.mean(1) if average_attn_weights else weights
        return output.transpose(0, 1) if self.batch_first else output, weights

    def _projections(self, query, key, value):
        if query.data_ptr() == key.data_ptr() == value.data_ptr() and query.shape == key.shape == value.shape:
            together = F.linear(query, self.in_proj_weight, self.in_proj_bias)
            return [x.contiguous() for x in together.chunk(3, -1)]
        weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return [F.linear(x, weight, bias) for x, weight, bias in zip((query, key, value), weights, biases)]

    def _mask(self, attn_mask, key_padding_mask, like, batch, sources):
        mask = _additive(attn_mask, like)
        if mask is not None and mask.dim() == 2:
            mask = mask.unsqueeze(0)
        padding = _additive(key_padding_mask, like)
        if padding is not None:
            padding = padding.view(batch, 1, 1, sources).expand(-1, self.num_heads, -1, -1)
            padding = padding.reshape(batch * self.num_heads, 1, sources)
            mask = padding if mask is None else mask + padding
        return mask


_ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


class TransformerEncoderLayer(Module):
    def __init__(
        self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5, batch_first=False,
        norm_first=False, bias=True, device=None, dtype=None,
    ):
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **options)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        if isinstance(activation, str):
            if activation not in _ACTIVATIONS:
                raise RuntimeError(f"activation should be relu/gelu, not {activation}")
            activation = _ACTIVATIONS[activation]
        self.activation = activation

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        x, masks = src, (src_mask, src_key_padding_mask)
        if self.norm_first:
            x = x + self._attend(self.norm1(x), *masks)
            return x + self._feed_forward(self.norm2(x))
        x = self.norm1(x + self._attend(x, *masks))
        return self.norm2(x + self._feed_forward(x))

    def _attend(self, x, mask, padding):
        return self.dropout1(self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0])

    def _feed_forward(self, x):
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = ModuleList([deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)
