"""The state of an optimizer is loaded to the CPU, and moved."""

# ---- Prelude: the model, the data, and the state of an earlier run.
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
os.chdir(tempfile.mkdtemp())
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(6, 3).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
dataloader = DataLoader(TensorDataset(torch.randn(40, 6), torch.randint(0, 3, (40,))), batch_size=8)
model(torch.ones(1, 6, device=device)).sum().backward()
optimizer.step()
model_save_path = "actor"
torch.save(optimizer.state_dict(), model_save_path + ".optim")
# ---- End of the prelude.

loss_fn = nn.CrossEntropyLoss()


def optimizer_to(optim, device):
    for param in optim.state.values():
        if isinstance(param, torch.Tensor):
            param.data = param.data.to(device)
            if param._grad is not None:
                param._grad.data = param._grad.data.to(device)
        elif isinstance(param, dict):
            for subparam in param.values():
                if isinstance(subparam, torch.Tensor):
                    subparam.data = subparam.data.to(device)
                    if subparam._grad is not None:
                        subparam._grad.data = subparam._grad.data.to(device)


torch.cuda.empty_cache()
optimizer.load_state_dict(torch.load(model_save_path + ".optim", map_location="cpu"))
optimizer_to(optimizer, device)


def train(dataloader, model, loss_fn, optimizer):
    size = len(dataloader.dataset)
    model.train()
    for batch, (X, y) in enumerate(dataloader):
        X, y = X.to(device), y.to(device)
        pred = model(X)
        loss = loss_fn(pred, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{batch * len(X)}/{size}: {loss.item():.4f}")


train(dataloader, model, loss_fn, optimizer)
torch.cuda.empty_cache()
for state in optimizer.state.values():
    print({name: value.device.type for name, value in state.items()})
    break
