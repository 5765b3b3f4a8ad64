import torch
x = torch.arange(12.0).view(3, 4)
y = x.t()[1:, ::2]
z = torch.cat([y, y + 1], dim=1)
print(x[x > 3], z.sum(0), x[:, [0, 2]], x[None].expand(2, 3, 4).shape)
x[1, 2] = 5
x[0] *= 2
print(torch.where(x > 2, x, -x).max(dim=1), x.topk(2), x.sort(descending=True).indices)
print(x.chunk(2), x.unsqueeze(0).permute(2, 0, 1).flatten(), (x @ x.T).softmax(-1))
