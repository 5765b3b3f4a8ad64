"""The memory of a GPU, under the names of an older PyTorch."""

import torch

device = torch.device("cuda")
print(torch.cuda.is_available())
print(torch.cuda.max_memory_allocated())

# ---- Prelude: without a GPU the next line raises.
if not torch.cuda.is_available():
    raise SystemExit
# ---- End of the prelude.

x = torch.rand(300, 300, 300, device=device)
torch.cuda.reset_max_memory_allocated()
print(torch.cuda.max_memory_allocated())
print(torch.cuda.memory_allocated())
torch.cuda.reset_max_memory_cached()
print(torch.cuda.max_memory_cached())
print(torch.cuda.memory_cached())
