"""`torch.nn`: layers, losses and containers."""

from .._missing import module_getattr
from . import functional, init, parallel, parameter, utils
from .attention_layers import MultiheadAttention, TransformerEncoder, TransformerEncoderLayer
from .containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .layers import (
    GELU, AdaptiveAvgPool2d, AvgPool2d, BatchNorm1d, BatchNorm2d, Conv2d, CrossEntropyLoss, Dropout, Embedding, Flatten,
    Identity, L1Loss, LayerNorm, LeakyReLU, Linear, LogSoftmax, MaxPool2d, MSELoss, NLLLoss, ReLU, Sigmoid, SiLU, Softmax,
    Softplus, Tanh, Unflatten,
)
from .more_layers import (
    CELU, ELU, GLU, SELU, AdaptiveAvgPool1d, AvgPool1d, ConstantPad2d, Conv1d, ConvTranspose2d, CosineSimilarity, Dropout1d,
    Dropout2d, Dropout3d, GroupNorm, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, InstanceNorm1d, InstanceNorm2d, LogSigmoid,
    MaxPool1d, Mish, PairwiseDistance, PixelShuffle, PReLU, ReLU6, RMSNorm, Softmin, Softshrink, Softsign, Tanhshrink, Threshold,
    Upsample, ZeroPad2d,
)
from .more_losses import (
    BCELoss, BCEWithLogitsLoss, CosineEmbeddingLoss, GaussianNLLLoss, HingeEmbeddingLoss, HuberLoss, KLDivLoss,
    MarginRankingLoss, PoissonNLLLoss, SmoothL1Loss, SoftMarginLoss, TripletMarginLoss,
)
from .module import Module
from .parallel import DataParallel
from .parameter import Buffer, Parameter
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNBase, RNNCell, RNNCellBase

__getattr__ = module_getattr("torch.nn", globals())
