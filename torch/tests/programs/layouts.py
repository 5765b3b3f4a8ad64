# Strides, memory formats, and writes through views.
import torch
from torch import nn

x = torch.zeros(3, 2)
print(x.t().clone().stride(), x.t().contiguous().stride(), torch.zeros_like(x.t()).stride(), (x.t() + 1).stride())
print(nn.Parameter(x.t()).stride(), x.t().double().stride())

images = torch.arange(120.0).view(2, 3, 4, 5)
last = images.to(memory_format=torch.channels_last)
print(last.shape, last.stride(), last.is_contiguous(), last.is_contiguous(memory_format=torch.channels_last))
print(torch.equal(images, last), (last * 2).stride(), last.relu().stride(), torch.cat([last, last]).stride())
print(last.contiguous().stride(), images.contiguous(memory_format=torch.channels_last).stride())
print(last.clone(memory_format=torch.contiguous_format).stride(), last.softmax(1).stride())
conv = nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)
print(conv.weight.stride(), conv.bias.stride())
try:
    images[0].contiguous(memory_format=torch.channels_last)
except RuntimeError as error:
    print(error)

w = torch.tensor([1.0, 2.0], requires_grad=True)
base = torch.ones(2, 2)
view = base[0]
view.mul_(w)
print(base.grad_fn.name(), str(view.grad_fn).split()[0], base)
base.sum().backward()
print(w.grad)

x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
y = x * 2
part = y[1:3]
y.mul_(3)
print(part.grad_fn.name(), part)
part.square().sum().backward()
print(x.grad)
rows = (x * 1).view(2, 2).unbind(0)
try:
    rows[1].mul_(2)
except RuntimeError as error:
    print(error)
