"""`torch.nn`: layers, losses and containers."""

from .._missing import module_getattr
from . import functional, init, parallel, parameter, utils
from .attention_layers import MultiheadAttention, TransformerEncoder, TransformerEncoderLayer
from .activations import (
    CELU, ELU, GLU, SELU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LogSigmoid, Mish, PReLU, ReLU6, Softmin, Softshrink,
    Softsign, Tanhshrink, Threshold,
)
from .containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .layers import (
    GELU, BatchNorm1d, BatchNorm2d, Conv2d, CrossEntropyLoss, Dropout, Embedding, Flatten, Identity, L1Loss, LayerNorm,
    LeakyReLU, Linear, LogSoftmax, MSELoss, NLLLoss, ReLU, Sigmoid, SiLU, Softmax, Softplus, Tanh, Unflatten,
)
from .more_layers import (
    ConstantPad2d, Conv1d, ConvTranspose2d, CosineSimilarity, Dropout1d, Dropout2d, Dropout3d, GroupNorm, InstanceNorm1d,
    InstanceNorm2d, PairwiseDistance, PixelShuffle, RMSNorm, Upsample, ZeroPad2d,
)
from .more_losses import (
    BCELoss, BCEWithLogitsLoss, CosineEmbeddingLoss, GaussianNLLLoss, HingeEmbeddingLoss, HuberLoss, KLDivLoss,
    MarginRankingLoss, PoissonNLLLoss, SmoothL1Loss, SoftMarginLoss, TripletMarginLoss,
)
from .module import Module
from .parallel import DataParallel
from .parameter import Buffer, Parameter
from .pooling import AdaptiveAvgPool1d, AdaptiveAvgPool2d, AvgPool1d, AvgPool2d, MaxPool1d, MaxPool2d
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNBase, RNNCell, RNNCellBase

__getattr__ = module_getattr("torch.nn", globals())
