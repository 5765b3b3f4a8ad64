# The words of PyTorch 2.11 for sizes that no device has, on the CPU: `python sizes.py > sizes.json`.
#
# The calls are those of `sizes.rs`.
import json
import re

import torch
import torch.nn.functional as F

T, P, Q, R, S, H = 2**50, 2**60, 2**61, 2**62, 2**63 - 1, 2**32
u8, f64, inf, nan = torch.uint8, torch.float64, float("inf"), float("nan")


def x(*sizes):
    return torch.zeros(sizes)


def e(*sizes):
    return torch.zeros(1).expand(sizes)


def i(size):
    return torch.zeros(1, dtype=torch.int64).expand(size)


words = {}
for call in re.findall(r'\("((?:torch|F|x|e)[.(].*?)", *[{\w]', open("../sizes.rs").read()):
    try:
        words[call] = f"no error, but {list(eval(call).shape)}"
    except Exception as error:
        words[call] = str(error).split("\n")[0]
print(json.dumps({"torch": torch.__version__.split("+")[0], "words": words}, indent=0))
