"""Functions of `torch` on whole tensors that are computed from other operations."""

import _torch
from _torch import Tensor, cat, float64, int64, ones, stack, where

from ._operation import composed, expect_floats, operation


def _size_of(x, dim):
    if x.dim() == 0 and dim in (0, -1):
        return 0
    if not -x.dim() <= dim < x.dim():
        raise IndexError(f"Dimension out of range (expected to be in range of [{-x.dim()}, {x.dim() - 1}], but got {dim})")
    return dim % x.dim()


def _product(x, dim):
    """The product along a dimension: halves are multiplied, again and again."""
    if x.size(dim) == 0:
        return x.sum(dim) + 1
    while x.size(dim) > 1:
        half, odd = divmod(x.size(dim), 2)
        product = x.narrow(dim, 0, half) * x.narrow(dim, half, half)
        x = cat([product, x.narrow(dim, 2 * half, 1)], dim) if odd else product
    return x.squeeze(dim)


def prod(input, dim=None, keepdim=False, *, dtype=None):
    if dtype is not None:
        input = input.to(dtype)
    elif not input.is_floating_point():
        input = input.to(int64)
    if dim is None:
        return _prod("ProdBackward0", lambda x: _product(x.reshape(-1), 0), lambda x: x, input)
    dim = _size_of(input, dim)
    if input.dim() == 0:
        return _prod("ProdBackward1", lambda x: x, lambda x: x, input)
    kept = lambda x: _product(x, dim).unsqueeze(dim)
    if keepdim:
        return _prod("ProdBackward1", kept, lambda x: x, input)
    return _prod("ProdBackward1", lambda x: _product(x, dim), lambda x: x.unsqueeze(dim), input)


def _prod(node, whole, spread, input):
    """`spread` gives a result the dimension that it lost."""
    if input.requires_grad and bool((input.detach() == 0).any()):
        return composed(node, lambda x: whole(x).clone(), input)
    return operation(node, lambda x: whole(x).clone(), lambda grad, y, x: spread(grad) * spread(y) / x, input)


def cumprod(input, dim, *, dtype=None):
    if dtype is not None or not input.is_floating_point():
        input = input.to(dtype or int64)
    dim = _size_of(input, dim)
    if input.dim() == 0:
        return input.clone()

    def products(x):
        rows = list(x.unbind(dim))
        for i in range(1, len(rows)):
            rows[i] = rows[i - 1] * rows[i]
        return stack(rows, dim) if rows else x.clone()

    return composed("CumprodBackward0", products, input)


def median(input, dim=None, keepdim=False):
    """The lower of the two middle elements, and NaN if there is one."""
    if input.dtype == _torch.bool:
        expect_floats("median_cpu", input)
    if dim is None:
        flat = input.reshape(-1)
        place = _middle(flat, 0)
        return composed("MedianBackward0", lambda x: x.reshape(-1).gather(0, place).squeeze(0), input)
    dim = _size_of(input, dim)
    if input.dim() == 0:
        indices = _torch.zeros_like(input, dtype=int64)
        values = input.clone()
    else:
        indices = _middle(input, dim)
        places = indices
        chosen = lambda x: x.gather(dim, places) if keepdim else x.gather(dim, places).squeeze(dim)
        values, indices = composed("MedianBackward1", chosen, input), indices if keepdim else indices.squeeze(dim)
    from ._core import return_types

    return return_types.median((values, indices))


def _middle(x, dim):
    order = x.detach().argsort(dim)
    place = order.narrow(dim, (x.size(dim) - 1) // 2, 1)
    if not x.is_floating_point():
        return place
    last = order.narrow(dim, x.size(dim) - 1, 1)  # NaN is the largest
    return where(x.detach().gather(dim, last).isnan(), last, place)


def diag(input, diagonal=0):
    if input.dim() == 1:
        return diag_embed(input, diagonal)
    if input.dim() != 2:
        raise RuntimeError(f"matrix or a vector expected, got {input.dim()}D input")
    return diagonal_of(input, diagonal, "DiagonalBackward0_copy")


def diag_embed(input, offset=0):
    size = input.size(-1) + abs(offset)
    rows = _torch.arange(input.size(-1), device=input.device) + max(-offset, 0)

    def embedded(x):
        matrix = _torch.zeros((*x.shape[:-1], size * size), dtype=x.dtype, device=x.device)
        places = (rows * size + rows + offset).expand(x.shape)
        return matrix.scatter_add(-1, places, x).view(*x.shape[:-1], size, size)

    return composed("DiagEmbedBackward0", embedded, input)


def diagonal_of(input, offset=0, node="DiagonalBackward0"):
    rows, columns = input.shape
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    start = max(offset, 0) + max(-offset, 0) * columns
    places = _torch.arange(count, device=input.device) * (columns + 1) + start
    return composed(node, lambda x: x.reshape(-1).gather(0, places), input)


def trace(input):
    if input.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.dim()}")
    return composed("TraceBackward0", lambda x: diagonal_of(x).sum(), input)


def roll(input, shifts, dims=None):
    if dims is None:
        return composed("RollBackward0", lambda x: _rolled(x.reshape(-1), shifts, 0).view(x.shape), input)
    pairs = [(shifts, dims)] if isinstance(dims, int) else list(zip(shifts, dims))

    def rolled(x):
        for shift, dim in pairs:
            x = _rolled(x, shift, dim)
        return x

    return composed("RollBackward0", rolled, input)


def _rolled(x, shift, dim):
    size = x.size(dim)
    shift = shift % size if size else 0
    return cat([x.narrow(dim, size - shift, shift), x.narrow(dim, 0, size - shift)], dim)


def inner(input, other):
    if input.dim() == 0 or other.dim() == 0:
        return input * other
    product = input.matmul(other) if other.dim() == 1 else input.matmul(other.transpose(-1, -2))
    return product.view(product.shape)


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    return _added("AddmmBackward0", lambda a, b: a.mm(b), input, mat1, mat2, beta, alpha)


def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    return _added("BaddbmmBackward0", lambda a, b: a.bmm(b), input, batch1, batch2, beta, alpha)


def _added(node, product_of, input, a, b, beta, alpha):
    def compute(x, a, b):
        product = product_of(a, b)
        return (x if beta == 1 else x * beta) + (product if alpha == 1 else product * alpha)

    return composed(node, compute, input, a, b)


def addcmul(input, tensor1, tensor2, *, value=1):
    compute = lambda x, a, b: x + (a * b if value == 1 else value * a * b)
    return composed("AddcmulBackward0", compute, input, tensor1, tensor2)


def addcdiv(input, tensor1, tensor2, *, value=1):
    compute = lambda x, a, b: x + (a / b if value == 1 else value * a / b)
    return composed("AddcdivBackward0", compute, input, tensor1, tensor2)


def logaddexp(input, other):
    def compute(a, b):
        most = a.maximum(b).detach()
        return most + ((a - most).exp() + (b - most).exp()).log()

    return composed("LogaddexpBackward0", compute, input, other)


def fmod(input, other):
    from ._elementwise import _truncated

    if not input.is_floating_point() or isinstance(other, Tensor):
        raise AttributeError("fmod of integers or by a tensor is not here: PyTorch has it, this course does not; `remainder` exists")

    def rest(x):
        wide = x.to(float64)
        return (wide - _truncated(wide / other) * other).to(x.dtype)

    return operation("FmodBackward0", rest, lambda grad, y, x: grad, input)


def bincount(input, weights=None, minlength=0):
    if input.dim() != 1 or input.is_floating_point():
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    size = max(int(input.max()) + 1 if input.numel() else 0, minlength)
    source = ones(input.shape, dtype=int64, device=input.device) if weights is None else weights
    return _torch.zeros(size, dtype=source.dtype, device=input.device).scatter_add(0, input.to(int64), source)


def einsum(equation, *operands):
    """Sums of products. Two operands at a time become a product of matrices, as in PyTorch."""
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not isinstance(equation, str):
        raise AttributeError("einsum of lists of dimensions is not here: PyTorch has it, this course does not")
    text = equation.replace(" ", "")
    if "." in text:
        raise AttributeError("einsum with an ellipsis is not here: PyTorch has it, this course does not")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise RuntimeError(
            "einsum(): more operands were provided than specified in the equation"
            if len(operands) > len(terms)
            else "einsum(): fewer operands were provided than specified in the equation"
        )
    if not arrow:
        right = "".join(sorted(label for label in set(left) - {","} if left.count(label) == 1))
    for i, (term, operand) in enumerate(zip(terms, operands)):
        if len(term) != operand.dim():
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) does not match the number of dimensions "
                f"({operand.dim()}) for operand {i} and no ellipsis was given"
            )
        if len(set(term)) != len(term):
            raise AttributeError("einsum with a repeated subscript is not here: PyTorch has it, this course does not")
    labels, result = terms[0], operands[0]
    for i, (term, operand) in enumerate(zip(terms[1:], operands[1:]), 1):
        kept = set(right).union(*terms[i + 1 :])
        labels, result = _sum_of_products(labels, result, term, operand, kept)
    summed = [i for i, label in enumerate(labels) if label not in right]
    if summed:
        result = result.sum(summed)
        labels = "".join(label for label in labels if label in right)
    order = [labels.index(label) for label in right]
    return result if order == list(range(len(order))) else result.permute(order)


def _sum_of_products(a_labels, a, b_labels, b, kept):
    def without_lonely(labels, x, others):
        alone = [i for i, label in enumerate(labels) if label not in kept and label not in others]
        return "".join(l for i, l in enumerate(labels) if i not in alone), x.sum(alone) if alone else x

    a_labels, a = without_lonely(a_labels, a, b_labels)
    b_labels, b = without_lonely(b_labels, b, a_labels)
    shared = [label for label in a_labels if label in b_labels]
    batch, summed = [l for l in shared if l in kept], [l for l in shared if l not in kept]
    rows, columns = [l for l in a_labels if l not in shared], [l for l in b_labels if l not in shared]
    size = {**dict(zip(b_labels, b.shape)), **dict(zip(a_labels, a.shape))}
    for label in shared:
        left, right = a.size(a_labels.index(label)), b.size(b_labels.index(label))
        if left == 1 or right == 1:  # broadcast
            a = a.expand([max(left, right) if l == label else -1 for l in a_labels])
            b = b.expand([max(left, right) if l == label else -1 for l in b_labels])
            size[label] = max(left, right)
        elif left != right:
            raise RuntimeError(
                f"einsum(): operands do not broadcast with remapped shapes [original->remapped]: {list(a.shape)} {list(b.shape)}"
            )
    result = batch + rows + columns
    if not summed:
        a = a.permute([a_labels.index(l) for l in batch + rows]).reshape([size[l] for l in batch + rows] + [1] * len(columns))
        b = b.permute([b_labels.index(l) for l in batch + columns])
        b = b.reshape([size[l] for l in batch] + [1] * len(rows) + [size[l] for l in columns])
        return "".join(result), a * b
    flat = lambda labels: _count(size[l] for l in labels)
    a = a.permute([a_labels.index(l) for l in batch + rows + summed]).reshape(flat(batch), flat(rows), flat(summed))
    b = b.permute([b_labels.index(l) for l in batch + summed + columns]).reshape(flat(batch), flat(summed), flat(columns))
    return "".join(result), a.bmm(b).view([size[l] for l in result])


def _count(sizes):
    count = 1
    for size in sizes:
        count *= size
    return count


def multinomial(input, num_samples, replacement=False, *, generator=None):
    """On the host, PyTorch's numbers. A GPU has other random numbers, so there it is refused."""
    if input.is_cuda:
        raise AttributeError("multinomial on a GPU is not here: PyTorch has it, this course does not")
    if input.dim() not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.size(-1):
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if bool((input < 0).any()) or not bool(input.isfinite().all()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if bool((input.sum(-1) <= 0).any()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    input = input.detach()
    if replacement and num_samples > 1:
        return _with_replacement(input, num_samples, generator)
    race = input / _torch.empty_like(input).exponential_(1, generator=generator)
    if num_samples == 1:
        return race.argmax(-1, keepdim=True)
    return race.topk(num_samples)[1]


def _with_replacement(input, count, generator):
    rows = []
    for row in input.reshape(-1, input.size(-1)):
        sums = row.cumsum(0)
        sums = (sums / sums[-1]).tolist()
        sums[-1] = 1.0
        draws = _torch.rand(count, dtype=float64, generator=generator).tolist()
        rows.append([_place(sums, draw) for draw in draws])
    samples = _torch.tensor(rows)
    return samples if input.dim() == 2 else samples[0]


def _place(sums, draw):
    """The first sum that is not below `draw`."""
    low, high = 0, len(sums)
    while high - low > 0:
        middle = low + (high - low) // 2
        if sums[middle] < draw:
            low = middle + 1
        else:
            high = middle
    return low


def exponential_(input, lambd=1, *, generator=None):
    """From uniform numbers, as PyTorch computes it on the host."""
    from ._elementwise import _log1p

    if input.is_cuda:
        raise AttributeError("exponential_ on a GPU is not here: PyTorch has it, this course does not")
    uniform = _torch.rand(input.shape, dtype=float64, generator=generator)
    return input.copy_(-1 / lambd * _log1p(-uniform))


METHODS = (
    prod, cumprod, median, diag, diag_embed, trace, roll, inner, addmm, baddbmm, addcmul, addcdiv, logaddexp, fmod, bincount,
    multinomial,
)
for _method in METHODS:
    _torch.add_method(_method.__name__, _method)
_torch.add_method("exponential_", exponential_)
