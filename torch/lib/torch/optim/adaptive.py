"""Optimizers that scale each step by earlier gradients. Their steps are the operations of PyTorch, in its order."""

from _torch import full_like, tensor, zeros_like

from .optimizer import Optimizer, check


class _Adaptive(Optimizer):
    _unused = ("maximize", "capturable", "differentiable")

    def step(self, closure=None):
        return self._take_step(closure, self._update)

    def _update(self):
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                state = self.state[param]
                if len(state) == 0:
                    self._begin(param, state, group)
                state["step"] += 1
                grad = param.grad
                if group["weight_decay"] != 0 and not group.get("decoupled_weight_decay"):
                    grad = grad + param * group["weight_decay"]
                self._move(param, grad, state, group)


class RMSprop(_Adaptive):
    def __init__(
        self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable=False, foreach=None,
        maximize=False, differentiable=False,
    ):
        check("learning rate", lr, lr >= 0.0)
        check("epsilon value", eps, eps >= 0.0)
        check("momentum value", momentum, momentum >= 0.0)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        check("alpha value", alpha, alpha >= 0.0)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay,
            "capturable": capturable, "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
        })

    def _begin(self, param, state, group):
        state["step"] = tensor(0.0)
        state["square_avg"] = zeros_like(param.detach())
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(param.detach())
        if group["centered"]:
            state["grad_avg"] = zeros_like(param.detach())

    def _move(self, param, grad, state, group):
        alpha, square_avg = group["alpha"], state["square_avg"]
        square_avg.mul_(alpha).add_((1 - alpha) * grad * grad)
        if group["centered"]:
            average = state["grad_avg"]
            average.add_((grad - average) * (1 - alpha))
            root = (square_avg - average * average).sqrt_()
        else:
            root = square_avg.sqrt()
        root.add_(group["eps"])
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"]
            buffer.mul_(group["momentum"]).add_(grad / root)
            param.add_(buffer, alpha=-group["lr"])
        else:
            param.add_(-group["lr"] * grad / root)


class Adagrad(_Adaptive):
    def __init__(
        self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *,
        maximize=False, differentiable=False, fused=None,
    ):
        check("learning rate", lr, lr >= 0.0)
        check("lr_decay value", lr_decay, lr_decay >= 0.0)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        check("initial_accumulator_value value", initial_accumulator_value, initial_accumulator_value >= 0.0)
        check("epsilon value", eps, eps >= 0.0)
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        })
        for group in self.param_groups:
            for param in group["params"]:
                self._begin(param, self.state[param], group)

    def _begin(self, param, state, group):
        state["step"] = tensor(0.0)
        state["sum"] = full_like(param.detach(), group["initial_accumulator_value"])

    def _move(self, param, grad, state, group):
        lr = group["lr"] / (1 + (float(state["step"]) - 1) * group["lr_decay"])
        state["sum"].add_(grad * grad)
        param.add_(-lr * grad / state["sum"].sqrt().add_(group["eps"]))


class Adadelta(_Adaptive):
    def __init__(
        self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, capturable=False, maximize=False,
        differentiable=False,
    ):
        check("learning rate", lr, lr >= 0.0)
        check("rho value", rho, 0.0 <= rho <= 1.0)
        check("epsilon value", eps, eps >= 0.0)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "capturable": capturable,
            "foreach": foreach, "differentiable": differentiable,
        })

    def _begin(self, param, state, group):
        state["step"] = tensor(0.0)
        state["square_avg"], state["acc_delta"] = zeros_like(param.detach()), zeros_like(param.detach())

    def _move(self, param, grad, state, group):
        rho, eps, square_avg, acc_delta = group["rho"], group["eps"], state["square_avg"], state["acc_delta"]
        square_avg.mul_(rho).add_((1 - rho) * grad * grad)
        root = square_avg.add(eps).sqrt_()
        delta = acc_delta.add(eps).sqrt_().div_(root).mul_(grad)
        acc_delta.mul_(rho).add_((1 - rho) * delta * delta)
        param.add_(delta, alpha=-group["lr"])


def _check_betas(lr, betas, eps, weight_decay):
    check("learning rate", lr, lr >= 0.0)
    check("epsilon value", eps, eps >= 0.0)
    check("beta parameter at index 0", betas[0], 0.0 <= betas[0] < 1.0)
    check("beta parameter at index 1", betas[1], 0.0 <= betas[1] < 1.0)
    check("weight_decay value", weight_decay, weight_decay >= 0.0)


class Adamax(_Adaptive):
    def __init__(
        self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False,
        differentiable=False, capturable=False,
    ):
        _check_betas(lr, betas, eps, weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })

    def _begin(self, param, state, group):
        state["step"] = tensor(0.0)
        state["exp_avg"], state["exp_inf"] = zeros_like(param.detach()), zeros_like(param.detach())

    def _move(self, param, grad, state, group):
        beta1, beta2 = group["betas"]
        average, most = state["exp_avg"], state["exp_inf"]
        average.add_((grad - average) * (1 - beta1))
        most.copy_(most.mul_(beta2).maximum(grad.abs().add_(group["eps"])))
        rate = group["lr"] / (1 - beta1 ** float(state["step"]))
        param.add_(-rate * average / most)


class NAdam(_Adaptive):
    def __init__(
        self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3, decoupled_weight_decay=False,
        *, foreach=None, maximize=False, capturable=False, differentiable=False,
    ):
        _check_betas(lr, betas, eps, weight_decay)
        check("momentum_decay value", momentum_decay, momentum_decay >= 0.0)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable,
        })

    def _begin(self, param, state, group):
        state["step"], state["mu_product"] = tensor(0.0), tensor(1.0)
        state["exp_avg"], state["exp_avg_sq"] = zeros_like(param.detach()), zeros_like(param.detach())

    def _move(self, param, grad, state, group):
        (beta1, beta2), lr, decay = group["betas"], group["lr"], group["momentum_decay"]
        step, average, squares = float(state["step"]), state["exp_avg"], state["exp_avg_sq"]
        if group["decoupled_weight_decay"]:
            param.mul_(1 - lr * group["weight_decay"])
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * decay))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * decay))
        state["mu_product"] *= mu
        average.add_((grad - average) * (1 - beta1))
        squares.mul_(beta2).add_((1 - beta2) * grad * grad)
        root = squares.div(1 - beta2**step).sqrt().add_(group["eps"])
        product = float(state["mu_product"])
        param.add_(-lr * (1.0 - mu) / (1.0 - product) * grad / root)
        param.add_(-lr * mu_next / (1.0 - product * mu_next) * average / root)
