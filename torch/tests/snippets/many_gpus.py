"""A model on another GPU, and on all of them."""

# ---- Prelude: `model` is given, and a machine may have too few GPUs.
import torch

model = torch.nn.Linear(4, 2)
# ---- End of the prelude.

if torch.cuda.device_count() > 1:
    model = model.to("cuda:1")
    print(next(model.parameters()).device)

from torch.nn import DataParallel

model = DataParallel(model)
if torch.cuda.is_available():
    model = model.to("cuda")
print(model)
print(model(torch.zeros(6, 4, device=next(model.parameters()).device)).shape)
