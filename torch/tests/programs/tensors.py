"""Tensors: creation, types, operators, indexing, views, printing."""

import torch

x = torch.arange(12).reshape(3, 4)
print(x, x.shape, x.dtype, x.size(0), x.ndim, len(x))
print(x[0], x[-1, 1:3], x[:, ::2], x[..., 0], x[None].shape, x[1, 2])
print(x[x > 5], x[torch.tensor([0, 2])], x[[0, 2]], x[:, [1, 3]], x[torch.tensor([0, 1]), torch.tensor([2, 3])])
y = x.float()
y[0] = 7
y[:, 1] = torch.tensor([1.0, 2.0, 3.0])
y[y > 8] = -1
y[1, 2] += 0.5
print(y)
print(y.sum(), y.sum(0), y.mean(dim=1, keepdim=True), y.max(), y.max(1), y.argmax(), y.min(dim=0).indices)
print(y.std(), y.var(0), y.norm(), y.abs().sum().item())
print(x + 1, 2 - y, y / 2, 10 / (y.abs() + 1), x // 2, x % 3, -x, x**2, y @ y.T)
print((x > 3) & (x < 8), ~(x > 3), (x > 3).any(), (x > 3).all(), (x == 2).sum())
print(torch.zeros(2, 3), torch.ones(2, dtype=torch.int64), torch.full((2, 2), 3.5), torch.eye(3), torch.linspace(0, 1, 5))
print(torch.tensor([1, 2, 3]), torch.tensor([1.0, 2]), torch.tensor(3.5), torch.tensor([True, False]), torch.tensor([]))
print(torch.tensor([[1e-5, 1e5], [1, 2]]), torch.tensor([1e10, 1.0]), torch.tensor([float("nan"), float("inf"), 1.0]))
print(x.T.shape, x.view(-1), x.reshape(2, -1).shape, x.unsqueeze(0).squeeze().shape, x.flatten(), x.permute(1, 0).is_contiguous())
print(torch.cat([x, x]).shape, torch.stack([x, x], dim=1).shape, [part.shape for part in x.split(2)], [part.tolist() for part in x.chunk(2, 1)])
print(x.tolist(), x[0, 0].item(), float(y[0, 0]), int(x[2, 3]), bool(x[0, 1]))
print(x.to(torch.float16), y.long(), y.double().dtype, y.half().dtype, y.bool())
print(f"{y[0, 0]:.2f} {x[0, 1]} {y.mean().item():.4f}")
print(torch.where(y > 0, y, torch.zeros_like(y)), y.clamp(0, 5), y.clamp(min=1), torch.maximum(y, -y))
print(x.equal(x.clone()), torch.equal(x, x + 1), torch.allclose(y, y + 1e-9))
a = torch.ones(3)
b = a
b += 1
print(a, a is b, a.add_(1) is a, a.data_ptr() == b.data_ptr())
print(torch.tensor([3, 1, 2]).float().softmax(0), torch.tensor([0.5, -0.5]).sigmoid(), torch.tensor([-1.0, 1.0]).relu())
print(x.repeat(1, 2).shape, torch.arange(3).repeat(2), x[:2, :2].expand(2, 2, 2).shape, torch.arange(0, 1, 0.25), torch.arange(5, 0, -2))
print(torch.tril(torch.ones(3, 3)), torch.triu(torch.ones(3, 3), 1), torch.arange(4).flip(0), torch.arange(6).view(2, 3).cumsum(1))
print(repr(torch.float32), torch.device("cpu"), repr(torch.device("cuda:1")), x.device, x.is_cuda, x.stride(), x.storage_offset())
print(torch.randn(0, 3), torch.empty(0).shape, torch.Size([2, 3]).numel(), torch.Size([1, 2]) + (3,))
print([row.sum().item() for row in x], 5 in x, 99 in x, dict(zip("ab", torch.tensor([1, 2]).tolist())))
for i, row in enumerate(x[:2]):
    print(i, row)
print(torch.finfo(torch.float32).eps, torch.iinfo(torch.int64).max)
large = torch.arange(2000).float()
print(large, large.view(40, 50))
print(torch.nonzero(torch.tensor([0, 3, 0, 5])), torch.gather(x, 1, torch.tensor([[0], [1], [2]])), x.index_select(0, torch.tensor([1])))
m = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
m[0, :] = 0
m[:, 0] += 1
m.mul_(2).sub_(1)
print(m, m.t(), m.numel(), m.dim(), m.type(), m.element_size(), m.nbytes)
s = torch.tensor([[3, 1, 2], [0, 5, 4]])
print(s.sort(), s.sort(0, descending=True).values, s.argsort(1), s.topk(2), s.float().topk(1, dim=0, largest=False).indices)
print(torch.tensor([2, 1, 2, 3]).unique(), torch.tensor([7.5, -7.5]) % 2, torch.tensor([7.5, -7.5]) // 2, torch.tensor([5, -5]) ** 3)
print(torch.nn.functional.normalize(s.float()), torch.count_nonzero(s), s.greater(2).any())
