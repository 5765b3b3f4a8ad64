# The states that PyTorch 2.11 makes of optimizers, schedules, scalers and generators, and its words for those that do not fit,
# on the CPU: `python state.py > state.json`.
#
# A value is [kind, …]: ["float", text], ["int", 3], ["bool", true], ["NoneType"], ["list", values], ["tuple", values],
# ["dict", [[key, value], …]], and of a tensor ["Tensor", type, sizes, values]. Numbers are texts, since a reader of JSON may
# miss the last bit of one.
import copy
import json
import warnings

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR

warnings.simplefilter("ignore")


def listed(value):
    kind = type(value).__name__
    if isinstance(value, torch.Tensor):
        texts = " ".join("%.9g" % v for v in value.flatten().tolist())
        return ["Tensor", str(value.dtype).removeprefix("torch."), list(value.shape), texts]
    if isinstance(value, dict):
        return [kind, [[key, listed(v)] for key, v in value.items()]]
    if isinstance(value, (list, tuple)):
        return [kind, [listed(v) for v in value]]
    if isinstance(value, float):
        return [kind, repr(value)]
    return [kind] if value is None else [kind, value]


def parameters():
    weight = (torch.arange(6).reshape(2, 3) - 2.5) / 4
    return [nn.Parameter(weight), nn.Parameter(torch.tensor([0.5, -0.25])), nn.Parameter(torch.ones(1))]


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01, maximize=True),
    "SGD nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1),
    "AdamW groups": lambda p: torch.optim.AdamW([{"params": p[:1], "lr": 0.5}, {"params": p[1:], "lr": 0.25}]),
}


def trained(name):
    """Three steps, in which the last parameter has no gradient, and an epoch after each but the last."""
    params = parameters()
    optimizer = OPTIMIZERS[name](params)
    schedule = StepLR(optimizer, 2)
    before = listed(optimizer.state_dict())
    for step in range(3):
        for parameter in params[:2]:
            parameter.grad = (torch.arange(parameter.numel()) * 0.5 + step - 1.25).reshape(parameter.shape)
        optimizer.step()
        if step < 2:
            schedule.step()
    return before, optimizer, schedule


states = []
for name in OPTIMIZERS:
    before, optimizer, schedule = trained(name)
    states.append([name, before, listed(optimizer.state_dict()), listed(schedule.state_dict())])

adam = trained("Adam")[1]
cosine = CosineAnnealingLR(adam, 10, eta_min=0.001)
cosine.step()
torch.manual_seed(3)
torch.randn(3)
rng_state = bytes(torch.get_rng_state().tolist()).hex()

MODEL = nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 1)))
STATE = MODEL.state_dict()


def load(model=(), strict=True, without=()):
    state = {name: value for name, value in STATE.items() if name not in without}
    MODEL.load_state_dict({**state, **dict(model)}, strict)


def load_optimizer(groups, change=lambda state: None):
    state = copy.deepcopy(adam.state_dict())
    change(state)
    torch.optim.Adam(groups).load_state_dict(state)


P = parameters()
ZERO = torch.zeros(1)
CALLS = """
load(without=["1.0.bias", "0.weight"])
load({"x": ZERO, "1.y": ZERO, "0.z": ZERO, "1.0.w": ZERO, "2.v": ZERO})
load({"0.weight": ZERO, "1.0.bias": torch.zeros(()), "x": ZERO}, without=["0.bias"])
load({"0.weight": ZERO, "x": ZERO}, strict=False, without=["0.bias"])
MODEL.load_state_dict(3)
load_optimizer([{"params": P[:1]}, {"params": P[1:]}])
load_optimizer(P[:2])
load_optimizer(P, lambda state: state.pop("state"))
load_optimizer(P, lambda state: state.pop("param_groups"))
torch.set_rng_state(torch.zeros(3))
torch.set_rng_state(torch.zeros(3, dtype=torch.uint8))
torch.amp.GradScaler("cpu").load_state_dict({})
torch.amp.GradScaler("cpu").load_state_dict({"scale": 1.0})
"""

words = {}
for call in CALLS.strip().splitlines():
    try:
        exec(call)
    except Exception as error:
        words[call] = [type(error).__name__, str(error)]
    else:
        raise AssertionError(call)

# Whose tensors a loaded state has: the checkpoint's own, unless they had to be converted; `step` never is.
loaded = {}
for name, dtype in [("float32", torch.float32), ("float64", torch.float64)]:
    params = [nn.Parameter(p.detach().to(dtype)) for p in parameters()]
    optimizer = torch.optim.Adam(params)
    optimizer.load_state_dict(adam.state_dict())
    own, given = optimizer.state_dict()["state"][0], adam.state_dict()["state"][0]
    loaded[name] = {key: [str(own[key].dtype).removeprefix("torch."), own[key] is given[key]] for key in own}

print(json.dumps({
    "torch": torch.__version__.split("+")[0],
    "states": states,
    "cosine": listed(cosine.state_dict()),
    "scaler": listed(torch.amp.GradScaler("cpu").state_dict()),
    "rng_state": rng_state,
    "words": words,
    "loaded": loaded,
}, indent=0))
