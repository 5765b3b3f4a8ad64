"""cuDNN chooses algorithms, or keeps to those that repeat."""

import torch

torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = False
print(torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic)
print(torch.backends.cudnn.enabled, torch.backends.cuda.matmul.allow_tf32)
