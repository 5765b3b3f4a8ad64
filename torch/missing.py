"""Writes MISSING.md: names that PyTorch has and this course does not. Run it here: torch-python missing.py > MISSING.md"""

import sys

import torch
from torch._names import NAMES

print("# Names that PyTorch has and this course does not\n")
print("`torch-python missing.py` writes this page. Each of these names raises an `AttributeError` that says so.\n")
print("| module | here | missing |\n| --- | --- | --- |")
lists = []
for label, names in NAMES.items():
    owner = torch.Tensor
    if label != "Tensor":
        try:
            __import__(label)
        except ImportError:
            pass
        owner = sys.modules.get(label)
    names = names.split()
    here = [name for name in names if owner is not None and hasattr(owner, name)]
    missing = [name for name in names if name not in here]
    title = "torch.Tensor" if label == "Tensor" else label
    print(f"| `{title}` | {len(here)} | {len(missing)} |")
    lists.append((title, missing))
for title, missing in lists:
    if missing:
        print(f"\n## {title}\n")
        print(", ".join(f"`{name}`" for name in missing))
