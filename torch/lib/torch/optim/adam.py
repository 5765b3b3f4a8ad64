"""Adam, and AdamW, whose weight decay is independent of the gradient."""

import _torch
from _torch import Tensor, tensor, zeros_like

from .optimizer import Optimizer, check


class Adam(Optimizer):
    _unused = ("amsgrad", "maximize", "capturable", "differentiable")

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None, maximize=False,
        capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False,
    ):
        check("learning rate", lr, lr >= 0.0)
        check("epsilon value", eps, eps >= 0.0)
        check("beta parameter at index 0", betas[0], 0.0 <= betas[0] < 1.0)
        check("beta parameter at index 1", betas[1], 0.0 <= betas[1] < 1.0)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        })

    def step(self, closure=None):
        return self._take_step(closure, self._update)

    def _update(self):
        ready = []
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            numbers = (group["lr"], beta1, beta2, group["eps"], group["weight_decay"])
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                state = self.state[param]
                if len(state) == 0:
                    state["step"] = tensor(0.0)
                    state["exp_avg"] = zeros_like(param.detach())
                    state["exp_avg_sq"] = zeros_like(param.detach())
                tensors = (param, grad, state["step"], state["exp_avg"], state["exp_avg_sq"])
                ready.append((tensors, numbers, group["decoupled_weight_decay"]))
        for arguments in ready:
            _torch.adam_step(*arguments)


class AdamW(Adam):
    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False, foreach=None,
        capturable=False, differentiable=False, fused=None,
    ):
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )
