"""The steps of optimizers, and the rates of schedulers."""

import torch
import torch.nn as nn
import torch.optim as optim

OPTIMIZERS = {
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01),
    "RMSprop, all": lambda p: optim.RMSprop(p, lr=0.01, alpha=0.9, momentum=0.9, centered=True, weight_decay=0.1),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1),
    "Adagrad, all": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5),
    "Adadelta": lambda p: optim.Adadelta(p),
    "Adadelta, all": lambda p: optim.Adadelta(p, lr=0.5, rho=0.8, weight_decay=0.1),
    "Adamax": lambda p: optim.Adamax(p, lr=0.05),
    "Adamax, all": lambda p: optim.Adamax(p, lr=0.05, betas=(0.8, 0.9), weight_decay=0.1),
    "NAdam": lambda p: optim.NAdam(p, lr=0.05),
    "NAdam, all": lambda p: optim.NAdam(p, lr=0.05, weight_decay=0.1, momentum_decay=0.01, decoupled_weight_decay=True),
}
for name, make in OPTIMIZERS.items():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    x, y = torch.randn(8, 3), torch.randn(8, 2)
    optimizer = make(model.parameters())
    for step in range(6):
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(name, f"{loss.item():.5f}")
    print(model.weight, model.bias)
    print({key: value for key, value in optimizer.state[model.bias].items()})
    print(optimizer)

for make in (
    lambda p: optim.RMSprop(p, lr=-1), lambda p: optim.Adadelta(p, rho=2), lambda p: optim.Adagrad(p, eps=-1.0), lambda p: optim.NAdam(p, betas=(2, 0)),
):
    try:
        make([torch.ones(1, requires_grad=True)])
    except ValueError as error:
        print(error)

SCHEDULERS = {
    "OneCycleLR": lambda o: optim.lr_scheduler.OneCycleLR(o, max_lr=0.1, total_steps=10),
    "OneCycleLR, linear": lambda o: optim.lr_scheduler.OneCycleLR(o, 0.1, epochs=2, steps_per_epoch=5, anneal_strategy="linear", three_phase=True),
    "CyclicLR": lambda o: optim.lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=3),
    "CyclicLR, triangular2": lambda o: optim.lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=2, step_size_down=1, mode="triangular2"),
    "CyclicLR, exp_range": lambda o: optim.lr_scheduler.CyclicLR(o, 0.01, 0.1, 2, mode="exp_range", gamma=0.9, cycle_momentum=False),
    "CosineAnnealingWarmRestarts": lambda o: optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 2, eta_min=0.001),
    "PolynomialLR": lambda o: optim.lr_scheduler.PolynomialLR(o, 6, power=2.0),
    "MultiplicativeLR": lambda o: optim.lr_scheduler.MultiplicativeLR(o, lambda epoch: 0.95),
}
for name, make in SCHEDULERS.items():
    optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=0.05, momentum=0.9)
    scheduler, rates = make(optimizer), []
    for step in range(9):
        rates.append((scheduler.get_last_lr()[0], optimizer.param_groups[0]["momentum"]))
        optimizer.step()
        scheduler.step()
    print(name, [(f"{rate:.9f}", f"{momentum:.6f}") for rate, momentum in rates])

optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=0.05)
scheduler = optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, 2)
for step in range(12):
    optimizer.step()
    scheduler.step(step / 3)
    print(f"{optimizer.param_groups[0]['lr']:.9f}", scheduler.T_i)
