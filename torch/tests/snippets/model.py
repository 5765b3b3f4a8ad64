"""Prelude of the programs that `import model`: an actor, whose outputs are between two limits."""

import torch
from torch import nn


class Actor(nn.Module):
    def __init__(self, num_inputs, low, high, hidden):
        super().__init__()
        sizes = [num_inputs, *hidden]
        layers = []
        for inputs, outputs in zip(sizes, sizes[1:]):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(sizes[-1], 1)
        self.low, self.high = low, high

    def forward(self, state):
        action = torch.tanh(self.head(self.body(state)))
        return self.low + (action + 1) * (self.high - self.low) / 2
