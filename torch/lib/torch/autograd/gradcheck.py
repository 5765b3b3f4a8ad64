"""`torch.autograd.gradcheck`: compares gradients with finite differences."""

import _torch
from _torch import Tensor


class GradcheckError(RuntimeError):
    """Gradients that differ from finite differences."""


def gradcheck(
    func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True,
    check_grad_dtypes=False, check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False,
    check_backward_ad=True, fast_mode=False, masked=None,
):
    for name, given in [("check_batched_grad", check_batched_grad), ("check_forward_ad", check_forward_ad), ("fast_mode", fast_mode)]:
        if given:
            raise AttributeError(f"gradcheck with {name} is not here: PyTorch has it, this course does not")
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    try:
        _check(func, inputs, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func, inputs, eps, atol, rtol):
    checked = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not checked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True."
        )
    outputs = _listed(func(*inputs))
    for place, output in enumerate(outputs):
        for number, i in enumerate(checked):
            analytical = _analytical(output, inputs[i])
            numerical = _numerical(func, inputs, i, place, eps)
            if not numerical.allclose(analytical, rtol, atol):
                raise GradcheckError(
                    f"Jacobian mismatch for output {place} with respect to input {number},\n"
                    f"numerical:{numerical}\nanalytical:{analytical}\n"
                )


def _listed(outputs):
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


def _analytical(output, x):
    """The gradient of each element of the output, as a column."""
    columns = []
    for place in range(output.numel()):
        seed = _torch.zeros(output.numel(), dtype=output.dtype, device=output.device)
        seed[place] = 1
        (grad,) = _torch.grad(output, (x,), seed.view(output.shape), True, True)
        columns.append(_torch.zeros_like(x).view(-1) if grad is None else grad.reshape(-1))
    return _torch.stack(columns, 1)


def _numerical(func, inputs, i, place, eps):
    rows = []
    guard = _torch.set_grad_enabled(False)
    try:
        x = inputs[i].detach()
        flat = x.view(-1) if x.is_contiguous() else x.reshape(-1)
        for element in range(x.numel()):
            sides = []
            for step in (eps, -eps):
                moved = flat.clone()
                moved[element] += step
                moved = moved.view(x.shape)
                sides.append(_listed(func(*inputs[:i], moved, *inputs[i + 1 :]))[place].reshape(-1))
            rows.append((sides[0] - sides[1]) / (2 * eps))
    finally:
        guard.end()
    return _torch.stack(rows)
