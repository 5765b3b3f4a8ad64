"""`torch.nn.functional`"""

import _torch
from _torch import Tensor

from .._missing import module_getattr
from .activation_functions import (
    celu, elu, glu, guessed_dim, gumbel_softmax, hardshrink, hardsigmoid, hardswish, hardtanh, mish, prelu, relu6, selu, softmin, softshrink,
    softsign, tanhshrink, threshold,
)
from .layer_functions import (
    adaptive_avg_pool1d, avg_pool1d, conv1d, conv_transpose2d, dropout1d, dropout2d, dropout3d, group_norm, instance_norm,
    interpolate, max_pool1d, pad, pixel_shuffle, rms_norm, scaled_dot_product_attention,
)
from .loss_functions import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cosine_embedding_loss, cosine_similarity, gaussian_nll_loss,
    hinge_embedding_loss, huber_loss, kl_div, legacy_reduction, logsigmoid, margin_ranking_loss, pairwise_distance, poisson_nll_loss,
    smooth_l1_loss, soft_margin_loss, triplet_margin_loss,
)

for _name in dir(_torch):
    if _name.startswith("F_"):
        globals()[_name[2:]] = getattr(_torch, _name)
del _name


def relu_(input):
    return input.relu_()


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    return input.softmax(guessed_dim("softmax", dim, input), dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    return input.log_softmax(guessed_dim("log_softmax", dim, input), dtype=dtype)


def normalize(input, p=2.0, dim=1, eps=1e-12):
    return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)


__getattr__ = module_getattr("torch.nn.functional", globals())
