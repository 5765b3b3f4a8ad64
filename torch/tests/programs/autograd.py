"""Gradients."""

import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = (x**2).sum()
print(y, y.grad_fn.name(), x.grad, x.is_leaf, y.is_leaf)
y.backward()
print(x.grad)
(x * 3).sum().backward()
print(x.grad, x.grad is x.grad)
x.grad.zero_()
print(x.grad)
x.grad = None
w = torch.randn(3, 3, requires_grad=True, generator=torch.Generator().manual_seed(1))
b = torch.zeros(3, requires_grad=True)
out = torch.relu(x @ w + b).mean()
out.backward()
print(w.grad.shape, b.grad)
with torch.no_grad():
    z = x * 2
    x -= 0.1
print(z.requires_grad, x, z.grad_fn)
print(torch.autograd.grad((x**3).sum(), x))
u = x.detach()
print(u.requires_grad, u.data_ptr() == x.data_ptr())


@torch.no_grad()
def f(t):
    return t * 2


print(f(x).requires_grad, torch.is_grad_enabled())
with torch.inference_mode():
    print((x * 2).is_inference())


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return t**3

    @staticmethod
    def backward(ctx, grad):
        (t,) = ctx.saved_tensors
        return 3 * t**2 * grad


t = torch.tensor([2.0, 3.0], requires_grad=True)
c = Cube.apply(t)
print(c)
c.sum().backward()
print(t.grad)
h = t * 2
h.register_hook(lambda grad: print("gradient", grad))
h.sum().backward()
try:
    s = (t * t).sum()
    s.backward()
    s.backward()
except RuntimeError as error:
    print(str(error).split(".")[0])
try:
    t += 1
except RuntimeError as error:
    print(error)
try:
    torch.ones(2).backward()
except RuntimeError as error:
    print(error)
v = torch.ones(2, requires_grad=True)
(v * torch.tensor([1.0, 2.0])).backward(torch.tensor([1.0, 10.0]))
print(v.grad)
for p in [torch.ones(1, requires_grad=True)]:
    p.register_post_accumulate_grad_hook(lambda q: print("hook", q.grad))
    (p * 5).sum().backward()
k = torch.tensor([1.0, 2.0], requires_grad=True)
mid = k * 3
mid.retain_grad()
(mid**2).sum().backward()
print(mid.grad, k.grad, mid.retains_grad)
