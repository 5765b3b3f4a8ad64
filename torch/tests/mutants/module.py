import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Linear(4, width)
        self.norm = nn.BatchNorm1d(width)
        self.register_buffer("count", torch.zeros(1))
    def forward(self, x):
        self.count += 1
        return self.norm(self.a(x)).tanh()
net = Net(5).to("cuda")
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
for step in range(3):
    loss = net(torch.randn(6, 4, device="cuda")).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
state = {name: value.clone() for name, value in net.state_dict().items()}
net.load_state_dict(state)
print(net, [p.shape for p in net.parameters()], scheduler.get_last_lr())
