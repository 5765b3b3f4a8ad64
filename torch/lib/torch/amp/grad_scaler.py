"""`GradScaler`: keeps the gradients of a loss within the range of float16."""

import warnings

import _torch
from _torch import float32, float64, full, int32

_READY, _UNSCALED, _STEPPED = range(3)


class GradScaler:
    def __init__(
        self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True
    ):
        from torch import cuda

        self._device, self._enabled = device, enabled
        if enabled and device == "cuda" and not cuda.is_available():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if self._enabled:
            assert growth_factor > 1.0, "The growth factor must be > 1.0."
            assert backoff_factor < 1.0, "The backoff factor must be < 1.0."
        self._init_scale, self._growth_factor, self._backoff_factor = init_scale, growth_factor, backoff_factor
        self._growth_interval, self._init_growth_tracker = growth_interval, 0
        self._scale = self._growth_tracker = None
        self._states = {}

    def _state(self, optimizer):
        return self._states.setdefault(id(optimizer), {"stage": _READY, "found_inf": {}})

    def _check(self, name):
        fix = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
        assert self._scale is not None, f"Attempted {name} but _scale is None.  " + fix
        assert self._growth_tracker is not None, f"Attempted {name} but _growth_tracker is None.  " + fix

    def scale(self, outputs):
        if not self._enabled:
            return outputs
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(output) for output in outputs)
        if self._scale is None:
            self._scale = full((), self._init_scale, dtype=float32, device=outputs.device)
            self._growth_tracker = full((), self._init_growth_tracker, dtype=int32, device=outputs.device)
        return outputs * self._scale.to(device=outputs.device, non_blocking=True)

    def unscale_(self, optimizer):
        if not self._enabled:
            return
        self._check("unscale_")
        state = self._state(optimizer)
        if state["stage"] == _UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # The reciprocal is rounded once.
        inv_scale = self._scale.double().reciprocal().float()
        state["found_inf"] = self._unscale(optimizer, inv_scale)
        state["stage"] = _UNSCALED

    def _unscale(self, optimizer, inv_scale):
        found = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                grad = parameter.grad
                if grad is None:
                    continue
                if grad.dtype is _torch.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                device = grad.device
                if device not in found:
                    found[device] = (full((), 0.0, dtype=float32, device=device), inv_scale.to(device))
                found_inf, inverse = found[device]
                _torch.unscale(grad, inverse, found_inf)
        return {device: found_inf for device, (found_inf, _) in found.items()}

    def step(self, optimizer, *args, **kwargs):
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check("step")
        state = self._state(optimizer)
        if state["stage"] == _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] == _READY:
            self.unscale_(optimizer)
        assert len(state["found_inf"]) > 0, "No inf checks were recorded for this optimizer."
        result = None
        if not sum(found_inf.item() for found_inf in state["found_inf"].values()):
            result = optimizer.step(*args, **kwargs)
        state["stage"] = _STEPPED
        return result

    def update(self, new_scale=None):
        if not self._enabled:
            return
        self._check("update")
        if new_scale is not None:
            if isinstance(new_scale, (int, float)):
                self._scale.fill_(new_scale)
            else:
                self._scale.copy_(new_scale)
        else:
            found = [
                found_inf.to(device=self._scale.device, non_blocking=True)
                for state in self._states.values()
                for found_inf in state["found_inf"].values()
            ]
            assert len(found) > 0, "No inf checks were recorded prior to update."
            combined = found[0]
            for found_inf in found[1:]:
                combined = combined + found_inf
            _torch.update_scale(
                (self._scale, self._growth_tracker, combined),
                self._growth_factor, self._backoff_factor, self._growth_interval,
            )
        self._states = {}

    def get_scale(self):
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def is_enabled(self):
        return self._enabled

    def state_dict(self):
        if not self._enabled:
            return {}
        tracker = self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())
        return {
            "scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": tracker,
        }

    def load_state_dict(self, state_dict):
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._init_growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])
