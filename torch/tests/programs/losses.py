"""Losses: values, the names of their nodes, and gradients."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
x, y = torch.randn(4, 3), torch.rand(4, 3)
sign = torch.tensor([[1.0, -1.0, 1.0]] * 4)
rows = torch.tensor([1.0, -1.0, 1.0, -1.0])

LOSSES = {
    "binary_cross_entropy": lambda x, **how: F.binary_cross_entropy(x.sigmoid(), y, **how),
    "binary_cross_entropy, weight": lambda x, **how: F.binary_cross_entropy(x.sigmoid(), y, y + 1, **how),
    "with_logits": lambda x, **how: F.binary_cross_entropy_with_logits(x, y, **how),
    "with_logits, weights": lambda x, **how: F.binary_cross_entropy_with_logits(x, y, y + 1, pos_weight=torch.tensor([1.0, 2.0, 3.0]), **how),
    "smooth_l1_loss": lambda x, **how: F.smooth_l1_loss(x, y, **how),
    "smooth_l1_loss, beta": lambda x, **how: F.smooth_l1_loss(x, y, beta=0.3, **how),
    "huber_loss": lambda x, **how: F.huber_loss(x, y, delta=0.7, **how),
    "kl_div": lambda x, **how: F.kl_div(x.log_softmax(1), y.softmax(1), **how),
    "kl_div, log_target": lambda x, **how: F.kl_div(x.log_softmax(1), y.log_softmax(1), log_target=True, **how),
    "poisson_nll_loss": lambda x, **how: F.poisson_nll_loss(x, y, **how),
    "poisson_nll_loss, full": lambda x, **how: F.poisson_nll_loss(x, y * 5, full=True, **how),
    "gaussian_nll_loss": lambda x, **how: F.gaussian_nll_loss(x, y, y + 0.1, **how),
    "soft_margin_loss": lambda x, **how: F.soft_margin_loss(x, sign, **how),
    "margin_ranking_loss": lambda x, **how: F.margin_ranking_loss(x, y, sign, margin=0.1, **how),
    "hinge_embedding_loss": lambda x, **how: F.hinge_embedding_loss(x, sign, **how),
    "cosine_embedding_loss": lambda x, **how: F.cosine_embedding_loss(x, y, rows, margin=0.1, **how),
    "triplet_margin_loss": lambda x, **how: F.triplet_margin_loss(x, y, -y, **how),
    "triplet_margin_loss, swap": lambda x, **how: F.triplet_margin_loss(x, y, -y, swap=True, **how),
}
for name, loss in LOSSES.items():
    for reduction in ("mean", "sum", "none"):
        leaf = x.clone().requires_grad_()
        value = loss(leaf, reduction=reduction)
        print(name, reduction, value)
        value.sum().backward()
        print(leaf.grad)

print(F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"))
print(F.cosine_similarity(x, y), F.pairwise_distance(x, y), F.cosine_similarity(x, torch.zeros(4, 3)))
print(F.binary_cross_entropy(torch.tensor([0.0, 1.0, 1e-9]), torch.tensor([1.0, 0.0, 0.0]), reduction="none"))

for module in (
    nn.BCELoss(), nn.BCEWithLogitsLoss(), nn.SmoothL1Loss(), nn.HuberLoss(), nn.KLDivLoss(), nn.MarginRankingLoss(),
    nn.CosineEmbeddingLoss(), nn.TripletMarginLoss(), nn.GaussianNLLLoss(), nn.PoissonNLLLoss(), nn.HingeEmbeddingLoss(),
    nn.SoftMarginLoss(), nn.CosineSimilarity(), nn.PairwiseDistance(),
):
    print(module)
print(nn.BCEWithLogitsLoss(pos_weight=torch.tensor([2.0]))(x, y), nn.HuberLoss(delta=0.5)(x, y), nn.GaussianNLLLoss()(x, y, y))

for wrong in (
    lambda: F.binary_cross_entropy(x, y),
    lambda: F.binary_cross_entropy(x.sigmoid(), y[:2]),
    lambda: F.binary_cross_entropy_with_logits(x, y[:2]),
    lambda: F.binary_cross_entropy(x.sigmoid(), y.long()),
    lambda: F.huber_loss(x, y, delta=0),
):
    try:
        wrong()
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__, str(error).split("\n")[0])

x = torch.rand(3, requires_grad=True)
p = x * 1
loss = F.binary_cross_entropy(p, torch.ones(3))
p.data_ptr()
with torch.no_grad():
    p.mul_(0.5)
try:
    loss.backward()
except RuntimeError as error:
    print(error)
