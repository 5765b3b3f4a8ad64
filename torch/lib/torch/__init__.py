"""`torch`: PyTorch's names for the tensors of this course, on a simulated GPU."""

import _torch

for _name in dir(_torch):
    if _name.startswith("T_"):
        globals()[_name[2:]] = getattr(_torch, _name)
    elif isinstance(getattr(_torch, _name), _torch.dtype):
        globals()[_name] = getattr(_torch, _name)
del _name

from _torch import (
    Generator, Tensor, are_deterministic_algorithms_enabled, device, dtype, get_autocast_dtype, get_rng_state,
    is_autocast_enabled, is_grad_enabled, is_inference_mode_enabled, manual_seed, set_rng_state,
)

from ._core import (
    _C, Size, OutOfMemoryError, __version__, channels_last, contiguous_format, default_generator, e, enable_grad, finfo,
    get_default_dtype, get_num_threads, set_num_threads, get_float32_matmul_precision, iinfo, inf, inference_mode, initial_seed, is_storage, is_tensor, layout,
    memory_format, meshgrid, nan, no_grad, pi, preserve_format, result_type, return_types, seed, set_default_dtype,
    set_float32_matmul_precision, set_grad_enabled, strided, typename, use_deterministic_algorithms, version,
)
from ._functions import (
    addcdiv, addcmul, addmm, baddbmm, bincount, cumprod, diag, diag_embed, einsum, fmod, inner, logaddexp, median, multinomial,
    prod, roll, trace,
)
from ._elementwise import FUNCTIONS as _FUNCTIONS
from ._legacy import (
    BoolTensor, ByteTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor, LongTensor,
)
from ._missing import module_getattr as _module_getattr
from . import autograd, cuda, nn, optim, utils, amp, backends, distributed, func, multiprocessing, profiler
from .amp import autocast
from .serialization import load, save
from . import _core

globals().update(_FUNCTIONS)
_core.share_functions(globals(), nn.functional)
cuda.OutOfMemoryError = OutOfMemoryError

__getattr__ = _module_getattr("torch", globals())
