"""A model goes to a file and comes back."""

# ---- Prelude: the model, a folder of its own, and a device where there is no GPU.
import os
import tempfile

import torch
import model

torch.manual_seed(4)
os.chdir(tempfile.mkdtemp())
hidden = [100, 50, 25]
device = torch.device("cpu")
# ---- End of the prelude.

if torch.cuda.is_available():
    device = torch.device("cuda", torch.cuda.current_device())
net = model.Actor(10, -2, 2, hidden).to(device)

PATH = "model.pt"
torch.save(net.state_dict(), PATH)

load_net = model.Actor(10, -2, 2, hidden)
print(load_net.load_state_dict(torch.load(PATH)))
print(next(load_net.parameters()).is_cuda)
load_net.to(device)
print(next(load_net.parameters()).is_cuda)
x = torch.randn(3, 10).to(device)
print(torch.equal(net(x), load_net(x)))
