"""`torch.nn`: layers, losses and containers."""

from .._missing import module_getattr
from . import functional, init, parallel, parameter, utils
from .containers import ModuleDict, ModuleList, ParameterList, Sequential
from .layers import (
    GELU, AdaptiveAvgPool2d, AvgPool2d, BatchNorm1d, BatchNorm2d, Conv2d, CrossEntropyLoss, Dropout, Embedding, Flatten,
    Identity, L1Loss, LayerNorm, LeakyReLU, Linear, LogSoftmax, MaxPool2d, MSELoss, NLLLoss, ReLU, Sigmoid, SiLU, Softmax,
    Softplus, Tanh, Unflatten,
)
from .module import Module
from .parallel import DataParallel
from .parameter import Buffer, Parameter

__getattr__ = module_getattr("torch.nn", globals())
