"""A tensor goes to a GPU and comes back."""

import torch

# ---- Prelude: without a GPU `.to('cuda')` raises.
where = "cuda" if torch.cuda.is_available() else "cpu"
# ---- End of the prelude.

x = torch.tensor([1.0, 2.0])
x_cuda = x.to(where)
x_cpu = x_cuda.to("cpu")
print(x_cuda.is_cuda, x_cpu, x_cpu is x)
