"""The old constructors: `torch.FloatTensor([1, 2])`, `torch.LongTensor(2, 3)`."""

import _torch
from _torch import Tensor


class _OfType(type):
    def __instancecheck__(cls, object):
        return isinstance(object, Tensor) and object.dtype == cls._dtype and not object.is_cuda

    def __call__(cls, *data):
        if len(data) == 1 and isinstance(data[0], (list, tuple)):
            return _torch.tensor(data[0], dtype=cls._dtype)
        if len(data) == 1 and isinstance(data[0], Tensor):
            if data[0].dtype != cls._dtype:
                kinds = {"float32": "Float", "float64": "Double", "int64": "Long", "int32": "Int", "uint8": "Byte", "bool": "Bool"}
                kind = lambda dtype: kinds.get(repr(dtype).removeprefix("torch."), "Half")
                raise TypeError(f"expected {kind(cls._dtype)}Tensor (got {kind(data[0].dtype)}Tensor)")
            return data[0].detach()
        return _torch.empty(data if data else (0,), dtype=cls._dtype)


def _of(name, dtype):
    return _OfType(name, (), {"_dtype": dtype, "dtype": dtype, "__module__": "torch"})


FloatTensor, DoubleTensor, HalfTensor = (
    _of(name, dtype)
    for name, dtype in [("FloatTensor", _torch.float32), ("DoubleTensor", _torch.float64), ("HalfTensor", _torch.float16)]
)
LongTensor, IntTensor, ByteTensor, BoolTensor = (
    _of(name, dtype)
    for name, dtype in [
        ("LongTensor", _torch.int64), ("IntTensor", _torch.int32), ("ByteTensor", _torch.uint8), ("BoolTensor", _torch.bool),
    ]
)
