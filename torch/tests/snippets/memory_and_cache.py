"""The memory of a GPU, and its cache."""

import torch

# ---- Prelude: something takes memory, and dies.
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.zeros(1000, 1000, device=device)
y = torch.zeros(2000, 1000, device=device)
del x
# ---- End of the prelude.

print(torch.cuda.memory_allocated())
print(torch.cuda.memory_reserved())
torch.cuda.empty_cache()
print(torch.cuda.memory_reserved())
