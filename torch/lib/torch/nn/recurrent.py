"""Recurrent layers. On the CPU PyTorch computes them from the same operations, but an LSTM by one of oneDNN."""

import math
import warnings

import _torch
from _torch import cat, empty, stack, zeros

from .._operation import with_node
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter


def _lstm_step(gates, state, hidden_linear):
    hidden, cell = state
    given, forgotten, new, shown = (hidden_linear(hidden) + gates).chunk(4, 1)
    cell = forgotten.sigmoid() * cell + given.sigmoid() * new.tanh()
    return shown.sigmoid() * cell.tanh(), cell


def _gru_step(gates, state, hidden_linear):
    (hidden,) = state
    reset, update, new = gates.chunk(3, 1)
    by_reset, by_update, by_new = hidden_linear(hidden).chunk(3, 1)
    reset, update = (by_reset + reset).sigmoid(), (by_update + update).sigmoid()
    new = (new + by_new * reset).tanh()
    return ((hidden - new) * update + new,)


def _tanh_step(gates, state, hidden_linear):
    return ((hidden_linear(state[0]) + gates).tanh(),)


def _relu_step(gates, state, hidden_linear):
    return ((hidden_linear(state[0]) + gates).relu(),)


# The steps, with the number of gates.
_MODES = {"LSTM": (_lstm_step, 4), "GRU": (_gru_step, 3), "RNN_TANH": (_tanh_step, 1), "RNN_RELU": (_relu_step, 1)}


def _refuse(given, what):
    if given:
        raise AttributeError(f"{what} is not here: PyTorch has it, this course does not")


class RNNBase(Module):
    def __init__(
        self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
        proj_size=0, device=None, dtype=None,
    ):
        super().__init__()
        if not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater "
                f"than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=2,
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        _refuse(proj_size, "proj_size")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        _, gates = _MODES[mode]
        options = {"device": device, "dtype": dtype}
        for layer in range(num_layers):
            for end in self._ends():
                size = input_size if layer == 0 else hidden_size * len(self._ends())
                self._add(f"weight_ih_l{layer}{end}", (gates * hidden_size, size), options)
                self._add(f"weight_hh_l{layer}{end}", (gates * hidden_size, hidden_size), options)
                if bias:
                    self._add(f"bias_ih_l{layer}{end}", (gates * hidden_size,), options)
                    self._add(f"bias_hh_l{layer}{end}", (gates * hidden_size,), options)
        self.reset_parameters()

    def _ends(self):
        return ("", "_reverse") if self.bidirectional else ("",)

    def _add(self, name, sizes, options):
        setattr(self, name, Parameter(empty(sizes, **options)))

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self):
        """The weights need no common memory here."""

    @property
    def all_weights(self):
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh") if self.bias else ("weight_ih", "weight_hh")
        return [
            [getattr(self, f"{kind}_l{layer}{end}") for kind in kinds] for layer in range(self.num_layers) for end in self._ends()
        ]

    def forward(self, input, hx=None):
        if not isinstance(input, _torch.Tensor):
            raise AttributeError("a PackedSequence is not here: PyTorch has it, this course does not")
        if input.dim() not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        if input.dtype != self.weight_ih_l0.dtype and not _torch.is_autocast_enabled(input.device.type):
            raise ValueError(f"input must have the type {self.weight_ih_l0.dtype}, got type {input.dtype}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")
        is_batched, count = input.dim() == 3, 2 if self.mode == "LSTM" else 1
        batch_dim = 0 if self.batch_first else 1
        if not is_batched:
            input = input.unsqueeze(batch_dim)
            if hx is not None:
                hx = tuple(state.unsqueeze(1) for state in (hx if count == 2 else (hx,)))
        elif hx is not None:
            hx = tuple(hx) if count == 2 else (hx,)
        sizes = (self.num_layers * len(self._ends()), input.size(batch_dim), self.hidden_size)
        if hx is None:
            hx = (zeros(sizes, dtype=input.dtype, device=input.device),) * count
        for i, state in enumerate(hx):
            if tuple(state.shape) != sizes:
                name = "hidden" if count == 1 else f"hidden[{i}]"
                raise RuntimeError(f"Expected {name} size {sizes}, got {list(state.shape)}")
        output, states = self._layers(input.transpose(0, 1) if self.batch_first else input, hx)
        if self.mode == "LSTM" and not output.is_cuda:
            output = with_node("MkldnnRnnLayerBackward0", output)
        if self.batch_first:
            output = output.transpose(0, 1)
            output = output if self.mode == "LSTM" else with_node("TransposeBackward1", output)
        if not is_batched:
            output, states = output.squeeze(batch_dim), tuple(state.squeeze(1) for state in states)
        return output, states if count == 2 else states[0]

    def _layers(self, x, hx):
        """The output of the last layer, and the last states of all layers."""
        first = [tuple(state[i] for state in hx) for i in range(hx[0].size(0))]
        weights, last = self.all_weights, []
        for layer in range(self.num_layers):
            outputs = []
            for end in self._ends():
                output, state = self._direction(x, first[len(last)], weights[len(last)], end != "")
                outputs.append(output)
                last.append(state)
            x = outputs[0] if len(outputs) == 1 else cat(outputs, -1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, True)
        return x, tuple(stack(states) for states in zip(*last))

    def _direction(self, x, state, weights, is_reversed):
        step, _ = _MODES[self.mode]
        input_weight, hidden_weight, input_bias, hidden_bias = weights if self.bias else (*weights, None, None)
        hidden_linear = lambda hidden: F.linear(hidden, hidden_weight, hidden_bias)
        steps = F.linear(x, input_weight, input_bias).unbind(0)
        outputs = []
        for gates in reversed(steps) if is_reversed else steps:
            state = step(gates, state, hidden_linear)
            outputs.append(state[0])
        return stack(outputs[::-1] if is_reversed else outputs), state

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text


class RNN(RNNBase):
    def __init__(
        self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0,
        bidirectional=False, device=None, dtype=None,
    ):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            device=device, dtype=dtype,
        )


class LSTM(RNNBase):
    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    def __init__(self, input_size, hidden_size, bias, mode, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias, self._mode = input_size, hidden_size, bias, mode
        _, gates = _MODES[mode]
        options = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(empty((gates * hidden_size, input_size), **options))
        self.weight_hh = Parameter(empty((gates * hidden_size, hidden_size), **options))
        self.register_parameter("bias_ih", Parameter(empty(gates * hidden_size, **options)) if bias else None)
        self.register_parameter("bias_hh", Parameter(empty(gates * hidden_size, **options)) if bias else None)
        bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _step(self, input, hx):
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        is_batched = input.dim() == 2
        input = input if is_batched else input.unsqueeze(0)
        if input.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {self.input_size}")
        if hx is None:
            hx = (zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device),) * (2 if name == "LSTMCell" else 1)
        elif not is_batched:
            hx = tuple(state.unsqueeze(0) for state in hx)
        step, _ = _MODES[self._mode]
        gates = F.linear(input, self.weight_ih, self.bias_ih)
        state = step(gates, hx, lambda hidden: F.linear(hidden, self.weight_hh, self.bias_hh))
        return state if is_batched else tuple(state.squeeze(0) for state in state)

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        if nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {nonlinearity}")
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, bias, f"RNN_{nonlinearity.upper()}", device, dtype)

    def forward(self, input, hx=None):
        return self._step(input, None if hx is None else (hx,))[0]


class GRUCell(RNNCellBase):
    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, "GRU", device, dtype)

    def forward(self, input, hx=None):
        return self._step(input, None if hx is None else (hx,))[0]


class LSTMCell(RNNCellBase):
    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, "LSTM", device, dtype)

    def forward(self, input, hx=None):
        return self._step(input, None if hx is None else tuple(hx))
