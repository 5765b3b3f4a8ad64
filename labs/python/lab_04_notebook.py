"""The cells of a notebook about the memory of a GPU, in the order in which they ran, which was not that of the page.

The names are today's: memory_cached is memory_reserved, and reset_peak_memory_stats resets all the peaks, where
reset_max_memory_allocated and reset_max_memory_cached seemed to reset one each.
"""

import torch

if not torch.cuda.is_available():
    print("There is no GPU, so there is nothing to see.")
    raise SystemExit

device = torch.device("cuda")

# In [3]
print(f"notebook = {torch.cuda.max_memory_allocated()}")

# A cell that is not on the page made something small, and dropped it: it left a segment of 2 MiB.
small = torch.zeros(1, device=device)
del small

# In [7]
x = torch.empty(300, 300, 300, device=device)
print(f"notebook = {torch.cuda.memory_reserved()}")

# In [16]: the cell that makes x, again. Until x is assigned, both are alive: the true peak is forgotten by the reset.
x = torch.empty(300, 300, 300, device=device)
true_peak = torch.cuda.max_memory_allocated()
torch.cuda.reset_peak_memory_stats()
print(f"notebook = {torch.cuda.max_memory_allocated()}")

# In [17]
torch.cuda.reset_peak_memory_stats()
print(f"notebook = {torch.cuda.max_memory_reserved()}")

# In [18]
print(f"notebook = {torch.cuda.memory_allocated()}")
print(f"{true_peak = }")

# Dropped memory stays with PyTorch. empty_cache() gives whole free segments back to the driver: reserved falls,
# allocated does not. It seldom cures "out of memory", because PyTorch does the same before it gives up.
del x
print(f"After del: {torch.cuda.memory_allocated()} allocated, {torch.cuda.memory_reserved()} reserved (measured)")
torch.cuda.empty_cache()
print(f"After empty_cache: {torch.cuda.memory_reserved()} reserved (measured)")
