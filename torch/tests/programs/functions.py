"""Functions on whole tensors: products, medians, diagonals, sums of products, and random choices."""

import torch

torch.manual_seed(5)
x = torch.rand(3, 4, requires_grad=True)
zero = torch.tensor([[1.0, 0.0, 2.0], [3.0, 4.0, 5.0]], requires_grad=True)


def show(y, *leaves):
    print(y)
    for leaf in leaves:
        leaf.grad = None
    y.sum().backward()
    for leaf in leaves:
        print(leaf.grad)


show(x.prod(), x)
show(torch.prod(x, 1), x)
show(x.prod(0, keepdim=True), x)
show(zero.prod(), zero)
show(zero.prod(1), zero)
print(torch.arange(1, 5).prod(), torch.tensor([True, False]).prod(), torch.ones(2, 0).prod(1), torch.tensor(2.0).prod())
show(x.cumprod(1), x)
show(x.median(), x)
show(x.median(1)[0], x)
print(x.detach().median(0), torch.tensor([3, 1, 2, 4]).median(), torch.tensor([1.0, float("nan"), 2.0]).median())
show(x.diag(), x)
show(x[0].diag(1), x)
show(torch.diag(x, -1), x)
show(x[:, :3].trace(), x)
show(x.roll(1), x)
show(x.roll((1, -1), (0, 1)), x)
show(torch.addmm(x[0], x, x.t() @ x), x)
show(torch.addcmul(x, x, x, value=0.5), x)
show(torch.addcdiv(x, x, x + 1, value=0.5), x)
show(torch.logaddexp(x, x * 2), x)
show(torch.fmod(x * 5, 2), x)
show(torch.inner(x, x), x)
print(torch.bincount(torch.tensor([0, 3, 1, 3])), torch.bincount(torch.tensor([1, 1]), minlength=4))
a, b, c = torch.rand(2, 3, 4, requires_grad=True), torch.rand(2, 4, 5), torch.rand(5, requires_grad=True)
for equation, operands in {
    "bij,bjk->bik": (a, b), "bij->bi": (a,), "ij,jk": (a[0], b[0]), "bij,bij->b": (a, a), "i,j->ij": (c, c), "i,i": (c, c),
    "bij->jib": (a,), "bij,bjk,k->bi": (a, b, c), "ij->": (a[0],), "bhd,bkd->bhk": (a, a),
}.items():
    y = torch.einsum(equation, *operands)
    print(equation, y.shape)
    print(y.detach())
    a.grad = c.grad = None
    y.square().sum().backward()
    print(a.grad, c.grad)

torch.manual_seed(0)
weights = torch.tensor([0.1, 0.2, 0.0, 0.7])
print(torch.multinomial(weights, 2), torch.multinomial(weights, 12, replacement=True), torch.multinomial(weights, 1))
print(torch.multinomial(torch.rand(3, 5), 2), torch.multinomial(torch.rand(2, 3), 4, True), torch.rand(1))
print(torch.empty(4).exponential_(), torch.empty(2, 2).exponential_(2.0))
print(list(torch.utils.data.WeightedRandomSampler([0.1, 0.9, 0.4], 5)), list(torch.utils.data.WeightedRandomSampler([0.1, 0.9, 0.4], 3, False)))
print(torch.nn.functional.gumbel_softmax(torch.zeros(2, 3)), torch.nn.functional.gumbel_softmax(torch.zeros(2, 3), hard=True))
for wrong in (
    lambda: torch.multinomial(weights, 5), lambda: torch.multinomial(-weights, 1), lambda: torch.einsum("ij,jk->ik", a[0]), lambda: x.prod(2),
    lambda: torch.trace(c),
):
    try:
        wrong()
    except (RuntimeError, IndexError) as error:
        print(type(error).__name__, error)

from torch.autograd import Variable

v = Variable(torch.FloatTensor([1, 2]), requires_grad=True)
print(v, isinstance(v, Variable), isinstance(v, torch.FloatTensor), torch.LongTensor([1, 2]), torch.FloatTensor(2, 3).shape, torch.FloatTensor())
print(torch.tensor(512.68853759765625).item(), torch.tensor(646.92999267578125).item(), [1e16, 1.5e-7, 0.1 + 0.2, -0.0, 1e22])
