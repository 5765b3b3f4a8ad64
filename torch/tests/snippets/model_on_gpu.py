"""A model of a module of its own, on the current GPU."""

import torch
import model

device = torch.device("cpu")
if torch.cuda.is_available() == True:
    device = torch.cuda.current_device()
    torch.cuda.set_device(device)
    device = torch.device("cuda", device)

hidden = [100, 50, 25]
net = model.Actor(10, -2, 2, hidden).to(device)
print(next(net.parameters()).is_cuda)
print(net)
