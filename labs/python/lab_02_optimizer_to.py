"""Moving an optimizer. It has no device; the state that it has gathered for each parameter does.

`load_state_dict` puts the state where the parameters are, all but Adam's step counter, which belongs on the host. So
`optimizer_to` is for a model that moves when the state is there already. The programs that circulate move the counter
too, which makes Adam read it back from the GPU in every step.
"""

import torch
from torch import nn, optim

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def optimizer_to(optimizer, device):
    """Moves what an optimizer has gathered. The step counter stays where it is."""
    for state in optimizer.state.values():
        for name, value in state.items():
            if torch.is_tensor(value) and name != "step":
                state[name] = value.to(device)


def train_a_step(model, optimizer, device):
    loss = model(torch.ones(8, 16, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


torch.manual_seed(42)
model = nn.Linear(16, 1)
optimizer = optim.Adam(model.parameters(), lr=1e-3)
train_a_step(model, optimizer, torch.device("cpu"))  # now there is a state, on the CPU

model.to(device)
optimizer_to(optimizer, device)
train_a_step(model, optimizer, device)

state = optimizer.state[model.weight]
for name, value in state.items():
    print(f"{name} is on {value.device}")

# From a file it goes where the parameters are, wherever the file puts it first: to the CPU, where there is room.
fresh = optim.Adam(model.parameters(), lr=1e-3)
fresh.load_state_dict(optimizer.state_dict())
print(f"Loaded: exp_avg is on {fresh.state[model.weight]['exp_avg'].device}")
