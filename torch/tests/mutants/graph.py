import torch
w = torch.randn(4, 3, requires_grad=True, device="cuda")
b = torch.zeros(3, requires_grad=True, device="cuda")
def f(x):
    h = x @ w + b
    return h.relu().mean()
x = torch.ones(2, 4, device="cuda")
y = f(x)
y.register_hook(lambda grad: grad * 2)
y.backward(retain_graph=True)
print(w.grad.sum().item(), b.grad)
g, = torch.autograd.grad(y, [w])
with torch.no_grad():
    w -= 0.1 * w.grad
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return 2 * x * grad
print(torch.autograd.grad(Square.apply(w).sum(), w))
