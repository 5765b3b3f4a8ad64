"""A first program on a GPU: which GPUs are there, a device, tensors there and back, and a model.

It runs without a GPU, too: it asks whether there is one before it asks anything else, because even the question
which GPU is the current one is an error where there is none.
"""

import torch
from torch import nn

print(f"Is CUDA built in? {torch.backends.cuda.is_built()}")
print(f"Is there a GPU? {torch.cuda.is_available()}")

if torch.cuda.is_available():
    for index in range(torch.cuda.device_count()):
        name = torch.cuda.get_device_name(index)
        current = index == torch.cuda.current_device()
        print(f"cuda:{index} {name}{', the current one' if current else ''} (measured)")

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(f"The selected device is: {device}")

# A tensor's .to returns a tensor: keep it. It is a new one only where something has to change.
x = torch.tensor([0.1, 0.2])
x_device = x.to(device)
x_back = x_device.to("cpu")
print(f"Equal bits: {torch.equal(x, x_back)}")
print(f"Moved to where it is, it is the same: {x.to('cpu') is x}")


class Actor(nn.Module):
    """Ten numbers in, one action out, which tanh squashes into [low, high]."""

    def __init__(self, inputs, low, high, hidden):
        super().__init__()
        layers = []
        for before, after in zip([inputs, *hidden], hidden):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.hidden = nn.Sequential(*layers)
        self.out = nn.Linear(hidden[-1], 1)
        self.low, self.high = low, high

    def forward(self, state):
        share = (self.out(self.hidden(state)).tanh() + 1) / 2
        return self.low + share * (self.high - self.low)


# A module's .to moves the module itself: nothing has to be kept.
torch.manual_seed(42)
actor = Actor(10, -2, 2, [100, 50, 25])
actor.to(device)

# next(actor.parameters()).is_cuda would speak for the first parameter only.
places = {parameter.device.type for parameter in actor.parameters()}
print(f"Its parameters are on: {', '.join(places)}")
print(f"num_parameters = {sum(parameter.numel() for parameter in actor.parameters())}")

with torch.no_grad():
    action = actor(torch.randn(1, 10).to(device))
print(f"Its action is between its limits: {-2 <= action.item() <= 2}")
