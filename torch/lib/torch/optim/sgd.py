"""Stochastic gradient descent."""

import _torch

from .optimizer import Optimizer, check


class SGD(Optimizer):
    _unused = ("differentiable",)

    def __init__(
        self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None,
        differentiable=False, fused=None,
    ):
        check("learning rate", lr, lr >= 0.0)
        check("momentum value", momentum, momentum >= 0.0)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        })

    def step(self, closure=None):
        return self._take_step(closure, self._update)

    def _update(self):
        ready = []
        for group in self.param_groups:
            numbers = (group["lr"], group["momentum"], group["dampening"], group["weight_decay"])
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                buffer, is_first = None, False
                if group["momentum"] != 0:
                    state = self.state[param]
                    buffer = state.get("momentum_buffer")
                    is_first = buffer is None
                    if is_first:
                        buffer = state["momentum_buffer"] = grad.detach().clone()
                ready.append(((param, grad), buffer, is_first, numbers, bool(group["nesterov"]), bool(group["maximize"])))
        for arguments in ready:
            _torch.sgd_step(*arguments)
