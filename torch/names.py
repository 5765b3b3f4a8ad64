"""Writes lib/torch/_names.py: the public names of PyTorch, for errors about names that are not here. Run it with PyTorch:
python names.py > lib/torch/_names.py"""

import importlib
import textwrap

MODULES = """torch torch.nn torch.nn.functional torch.nn.init torch.nn.utils torch.nn.parallel torch.optim torch.optim.lr_scheduler
torch.utils torch.utils.data torch.cuda torch.amp torch.cuda.amp torch.autograd torch.backends torch.backends.cudnn
torch.profiler torch.distributed torch.multiprocessing torch.func torch.linalg torch.utils.checkpoint""".split()

import torch

print('"""The public names of PyTorch %s, written by names.py."""\n' % torch.__version__.split("+")[0])
print("NAMES = {")
for label, names in [*((name, dir(importlib.import_module(name))) for name in MODULES), ("Tensor", dir(torch.Tensor))]:
    public = [name for name in names if not name.startswith("_") and name.isidentifier()]
    print(f'    "{label}": """')
    print("\n".join(" " + line + " " for line in textwrap.wrap(" ".join(public), 120)))
    print('""",')
print("}")
