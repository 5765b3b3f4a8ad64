"""Recurrent layers: their weights, results, gradients and training."""

import torch
import torch.nn as nn

torch.manual_seed(1)
x = torch.randn(5, 3, 4)
for layer in (
    nn.RNN(4, 6), nn.RNN(4, 6, 2, nonlinearity="relu"), nn.LSTM(4, 6), nn.GRU(4, 6), nn.LSTM(4, 3, 2, batch_first=True),
    nn.GRU(4, 3, bidirectional=True), nn.LSTM(4, 3, 2, bidirectional=True, bias=False), nn.GRU(4, 3, 2, dropout=0.5),
):
    print(layer, [(name, tuple(weight.shape)) for name, weight in layer.named_parameters()])
    leaf = x.clone().requires_grad_()
    output, state = layer(leaf)
    print(output[:2], output.shape, output.stride())
    print(state)
    output.square().sum().backward()
    print(leaf.grad[0], [weight.grad.norm() for weight in layer.parameters()])

lstm = nn.LSTM(4, 6)
h, c = torch.randn(1, 3, 6), torch.randn(1, 3, 6)
print(lstm(x, (h, c))[1])
print(lstm(x[:, 0])[0].shape, nn.GRU(4, 6)(x[:, 0])[1].shape)

for cell in (nn.RNNCell(4, 6), nn.LSTMCell(4, 6), nn.GRUCell(4, 6, bias=False), nn.RNNCell(4, 6, nonlinearity="relu")):
    print(cell)
    state = cell(x[0])
    print(state)
    print(cell(x[1], state))
print(nn.GRUCell(4, 6)(x[0, 0]))

for wrong in (
    lambda: lstm(torch.randn(5, 3, 5)), lambda: lstm(torch.randn(5)), lambda: lstm(x, (h[:, :2], c)),
    lambda: nn.RNN(4, 0), lambda: nn.RNN(4, 6, nonlinearity="elu"), lambda: nn.GRU(4, 6)(x, h[:, :2]), lambda: nn.LSTM(4, 6, dropout=2),
):
    try:
        wrong()
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__, error)


class Model(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.recurrent, self.head = kind(1, 8, batch_first=True), nn.Linear(8, 1)

    def forward(self, x):
        output, _ = self.recurrent(x)
        return self.head(output[:, -1])


time = torch.linspace(0, 6, 40)
windows = time.sin().unfold(0, 8, 1)
for kind in (nn.RNN, nn.LSTM, nn.GRU):
    model = Model(kind)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(10):
        loss = nn.functional.mse_loss(model(windows[:, :-1].unsqueeze(-1)), windows[:, -1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(kind.__name__, f"{loss.item():.5f}", sorted(model.state_dict())[:3])
