"""`torch.optim.Optimizer`: groups of parameters, and the state of each parameter."""

import warnings
from collections import OrderedDict, defaultdict
from copy import deepcopy

import _torch
from _torch import Tensor


class _Required:
    def __repr__(self):
        return "<required parameter>"


required = _Required()


class Optimizer:
    # Options that only their defaults are accepted for.
    _unused = ()

    def __init__(self, params, defaults):
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got " + params.type()
            )
        self.defaults, self.state, self.param_groups = defaults, defaultdict(dict), []
        self._hooks_before, self._hooks_after = OrderedDict(), OrderedDict()
        self._step_count = 0
        groups = list(params)
        if len(groups) == 0:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))

    def add_param_group(self, param_group):
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            param_group["params"] = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change "
                "between runs. Please use a list instead."
            )
        else:
            param_group["params"] = list(params)
        names = [param[0] for param in param_group["params"] if isinstance(param, tuple)]
        if names:
            param_group["params"] = [param[1] for param in param_group["params"]]
            param_group["param_names"] = names
        for param in param_group["params"]:
            if not isinstance(param, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + type(param).__name__)
            if not param.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self._check_unused(param_group)
        params = param_group["params"]
        if len(params) != len(set(params)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        known = {param for group in self.param_groups for param in group["params"]}
        if not known.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _check_unused(self, group):
        for name in self._unused:
            if group.get(name):
                raise AttributeError(f"{name}={group[name]!r} is not here: PyTorch has it, this course does not")

    def zero_grad(self, set_to_none=True):
        _torch.spend_zero_grad()
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    param.grad.detach_().zero_()

    def step(self, closure=None):
        raise NotImplementedError

    def register_step_pre_hook(self, hook):
        from torch.nn.module import _add_hook

        return _add_hook(self._hooks_before, hook)

    def register_step_post_hook(self, hook):
        from torch.nn.module import _add_hook

        return _add_hook(self._hooks_after, hook)

    def _take_step(self, closure, update):
        """Runs a step as all optimizers of this course do: the closure, hooks, then the update without a graph."""
        for hook in list(self._hooks_before.values()):
            hook(self, (), {})
        loss = None
        if closure is not None:
            guard = _torch.set_grad_enabled(True)
            try:
                loss = closure()
            finally:
                guard.end()
        guard = _torch.set_grad_enabled(False)
        try:
            _torch.spend_step()
            self._step_count += 1
            update()
        finally:
            guard.end()
        for hook in list(self._hooks_after.values()):
            hook(self, (), {})
        return loss

    def state_dict(self):
        numbers, groups = {}, []
        for group in self.param_groups:
            packed = {name: value for name, value in group.items() if name != "params"}
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict):
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(own["params"]) != len(given["params"]) for own, given in zip(groups, saved)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        for group in saved:
            self._check_unused(group)
        by_number = {}
        for own, given in zip(groups, saved):
            by_number.update(zip(given["params"], own["params"]))

        def cast(param, value, key=None):
            if isinstance(value, Tensor):
                if key == "step":
                    return value.to(dtype=_torch.float32) if not param.is_floating_point() else value
                if param.is_floating_point():
                    return value.to(dtype=param.dtype, device=param.device)
                return value.to(device=param.device)
            if isinstance(value, dict):
                return {key: cast(param, item, key) for key, item in value.items()}
            return value

        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_number:
                state[by_number[key]] = cast(by_number[key], value)
            else:
                state[key] = value
        self.state = state
        self.param_groups = [{**given, "params": own["params"]} for own, given in zip(groups, saved)]

    def __repr__(self):
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for name in sorted(group):
                if name != "params":
                    text += f"    {name}: {group[name]}\n"
        return text + ")"


def check(name, value, valid):
    if not valid:
        raise ValueError(f"Invalid {name}: {value}")
