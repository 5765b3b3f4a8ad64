"""`torch.optim`: optimizers."""

from .._missing import module_getattr
from . import lr_scheduler
from .adam import Adam, AdamW
from .adaptive import Adadelta, Adagrad, Adamax, NAdam, RMSprop
from .optimizer import Optimizer
from .sgd import SGD

__getattr__ = module_getattr("torch.optim", globals())
