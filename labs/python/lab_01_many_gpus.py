"""Several GPUs: a model on one of them, and DataParallel, which splits each batch among all. Chapter 10 is about them.

PyTorch recommends DistributedDataParallel in place of DataParallel, even on one computer: a process for each GPU, and
no copy of the model in every step.
"""

import torch
from torch import nn

for index in range(torch.cuda.device_count()):
    print(f"cuda:{index} {torch.cuda.get_device_name(index)} (measured)")

torch.manual_seed(42)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
batch = torch.randn(64, 16)

if torch.cuda.device_count() > 1:
    model.to("cuda:1")
    print(f"The model is on {next(model.parameters()).device} (measured)")

# Its parameters have to be on the first of its devices; the batch may be anywhere. Without a GPU it only calls the model.
parallel = nn.DataParallel(model)
parallel.to("cuda" if torch.cuda.is_available() else "cpu")
scores = parallel(batch)
print(f"A score for each sample: {len(scores) == len(batch)}")
