"""Modules: of one's own, containers, states, hooks."""

import copy
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size, bias=False)
        self.norm = nn.LayerNorm(size)
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x):
        self.steps += 1
        return x + self.scale * F.relu(self.norm(self.linear(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(4) for _ in range(2)])
        self.head = nn.Sequential(OrderedDict([("drop", nn.Dropout(0.1)), ("out", nn.Linear(4, 2))]))
        self.heads = nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Identity()})

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.heads["a"](self.head(x))


torch.manual_seed(0)
net = Net()
print(net)
print([name for name, _ in net.named_parameters()], [name for name, _ in net.named_buffers()])
print(sum(p.numel() for p in net.parameters() if p.requires_grad))
net.eval()
x = torch.randn(3, 4)
print(net(x))
print(net.blocks[0].steps, net.training, net.head.drop.training)
state = net.state_dict()
print(list(state)[:3], state["head.out.bias"])
other = Net()
print(other.load_state_dict(state))
other.eval()
print(torch.equal(other(x), net(x)))
clone = copy.deepcopy(net)
with torch.no_grad():
    clone.head.out.bias.add_(1)
print(torch.equal(clone.head.out.bias, net.head.out.bias + 1))
handle = net.head.register_forward_hook(lambda module, args, output: print("hook", tuple(output.shape)))
net(x)
handle.remove()
net(x)
for parameter in net.blocks.parameters():
    parameter.requires_grad_(False)
print(sum(p.requires_grad for p in net.parameters()))
net.apply(lambda module: nn.init.constant_(module.weight, 0.5) if isinstance(module, nn.Linear) else None)
print(net.head.out.weight)
print(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.MaxPool2d(2), nn.BatchNorm2d(8), nn.Embedding(10, 3), nn.ReLU(inplace=True))
try:
    net.load_state_dict({"x": torch.ones(1)})
except RuntimeError as error:
    print(error)
try:
    net.missing
except AttributeError as error:
    print(error)
conv = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * 4 * 4, 3))
y = conv(torch.randn(2, 1, 8, 8))
print(y)
loss = nn.CrossEntropyLoss()(y, torch.tensor([0, 2]))
loss.backward()
print(loss, conv[0].weight.grad.abs().sum())
print(F.cross_entropy(y, torch.tensor([0, 2]), reduction="none", label_smoothing=0.1), F.mse_loss(y, y * 2), F.l1_loss(y, y * 2))
print(F.softmax(y, dim=1).sum(1), F.log_softmax(y, dim=-1).shape, F.gelu(torch.tensor([1.0, -1.0])), F.one_hot(torch.tensor([0, 2]), 3))
print(net.double().head.out.weight.dtype, isinstance(net.head.out.weight, nn.Parameter))
print(nn.Parameter(torch.ones(2)), list(net.children())[2])

# Activations in place keep what their gradients need.
for activation in (nn.LeakyReLU(0.1, inplace=True), nn.SiLU(inplace=True), nn.ELU(inplace=True), nn.ReLU6(inplace=True), nn.Dropout(0.0, inplace=True)):
    x = torch.tensor([-1.0, 2.0, 7.0], requires_grad=True)
    activation(x * 1).sum().backward()
    print(activation, x.grad)

# The old arguments of losses, and dimensions that PyTorch guesses.
x, y = torch.arange(6.0).view(2, 3), torch.ones(2, 3)
print(nn.functional.mse_loss(x, y, size_average=False), nn.functional.l1_loss(x, y, reduce=False), nn.MSELoss(size_average=False)(x, y))
print(nn.functional.softmax(x), nn.functional.log_softmax(x[0]), nn.functional.nll_loss(x, torch.tensor([0, 1]), size_average=False))

# Norms along dimensions, which have a gradient of 0 at 0.
x = torch.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
for norm in (x.norm(2, 1), x.norm(dim=0, keepdim=True), x.norm(1), x.norm(float("inf"))):
    x.grad = None
    norm.sum().backward()
    print(norm, x.grad)

quotient = x // 2
try:
    quotient.sum().backward()
except RuntimeError as error:
    print(quotient, error)
rest = x % torch.tensor([2.0, 3.0])
rest.sum().backward()
print(rest, x.grad, x.sort(1)[0], x.topk(1)[0], x.logsumexp(1), x.flip(0), x.repeat(1, 2))
print(torch.tensor([1, -1, 2]) ** torch.tensor([-1, -3, -1]), torch.tensor([True]) ** 2, torch.tensor(2.0) % torch.tensor([True]))
# Other sizes under the same name.
layer = nn.Linear(1, 1)
layer.bias.data = torch.tensor([[0.5]])
layer(torch.ones(1, 1)).sum().backward()
print(layer.bias, layer.bias.grad)

