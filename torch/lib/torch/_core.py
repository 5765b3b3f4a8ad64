"""The part of `torch` in Python. Here `max` and `float` are Python's: in `torch` they are PyTorch's."""

import sys

import _torch
from _torch import Generator, Tensor, device, dtype

from ._missing import missing

__version__ = "2.11.0+cu130"
version = type(sys)("torch.version")
version.__version__, version.cuda, version.hip, version.git_version = __version__, "13.0", None, "here"
sys.modules["torch.version"] = version

inf, nan, pi, e = float("inf"), float("nan"), 3.141592653589793, 2.718281828459045


class Size(tuple):
    """The sizes of a tensor."""

    __slots__ = ()

    def __repr__(self):
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, index):
        item = tuple.__getitem__(self, index)
        return Size(item) if isinstance(index, slice) else item

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def numel(self):
        product = 1
        for size in self:
            product *= size
        return product


class _Constant:
    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return self._name


class layout(_Constant):
    pass


class memory_format(_Constant):
    pass


strided = layout("torch.strided")
contiguous_format = memory_format("torch.contiguous_format")
preserve_format = memory_format("torch.preserve_format")
channels_last = memory_format("torch.channels_last")


class OutOfMemoryError(RuntimeError):
    """A GPU has no memory left."""


OutOfMemoryError.__module__ = "torch"
OutOfMemoryError.__qualname__ = "OutOfMemoryError"


class Node:
    """A node of the graph: `x.grad_fn`."""

    def __init__(self, name):
        self._name = name

    def name(self):
        name = self._name
        return "torch::autograd::CopySlices" if name == "CopySlices" else name

    def __repr__(self):
        return f"<{self._name} object at {id(self):#x}>"

    def __getattr__(self, name):
        raise AttributeError(f"`grad_fn.{name}` is not here: PyTorch has it, this course does not; `grad_fn.name()` exists")


def _return_type(name):
    class type_(tuple):
        __slots__ = ()
        values = property(lambda self: self[0])
        indices = property(lambda self: self[1])

        def __repr__(self):
            return f"torch.return_types.{name}(\nvalues={self[0]!r},\nindices={self[1]!r})"

    type_.__name__ = type_.__qualname__ = name
    return type_


return_types = type(sys)("torch.return_types")
for _name in ("max", "min", "sort", "topk", "median"):
    setattr(return_types, _name, _return_type(_name))
    _torch.register(_name, getattr(return_types, _name))


def _deepcopy(tensor, memo):
    if not tensor.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(tensor) in memo:
        return memo[id(tensor)]
    copied = tensor.detach().clone()
    if type(tensor) is not Tensor:
        copied = Tensor.__new__(type(tensor), copied)
    copied.requires_grad = tensor.requires_grad
    if tensor.grad is not None:
        copied.grad = _deepcopy(tensor.grad, memo)
    memo[id(tensor)] = copied
    return copied


for _name, _object in [
    ("Size", Size), ("strided", strided), ("OutOfMemoryError", OutOfMemoryError), ("Node", Node), ("deepcopy", _deepcopy),
    ("missing", lambda where, name: missing(where, name, dir(Tensor))),
]:
    _torch.register(_name, _object)
del _name, _object


def _register_hook(self, hook):
    """Calls `hook` with the gradient of this result; it may return another one."""
    if self.is_leaf:
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        raise AttributeError(
            "torch.Tensor.register_hook of a leaf is not here: PyTorch has it, this course does not; "
            "`register_post_accumulate_grad_hook` exists"
        )
    handle = _Handle(hook)
    _torch.on_gradient(self, handle)
    return handle


class _Handle:
    def __init__(self, hook):
        self._hook = hook

    def __call__(self, grad):
        return self._hook(grad) if self._hook is not None else None

    def remove(self):
        self._hook = None


_torch.add_method("register_hook", _register_hook)
_torch.add_method("_grad", property(lambda self: self.grad, lambda self, grad: setattr(self, "grad", grad)))


class finfo:
    """The limits of a floating-point type."""

    _LIMITS = {
        "torch.float16": (16, 0.0009765625, 65504.0, 6.103515625e-05, 0.001),
        "torch.bfloat16": (16, 0.0078125, 3.3895313892515355e38, 1.1754943508222875e-38, 0.01),
        "torch.float32": (32, 1.1920928955078125e-07, 3.4028234663852886e38, 1.1754943508222875e-38, 1e-06),
        "torch.float64": (64, 2.220446049250313e-16, 1.7976931348623157e308, 2.2250738585072014e-308, 1e-15),
    }

    def __init__(self, type=None):
        name = repr(type or _torch.float32)
        if name not in self._LIMITS:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{name}'")
        self.bits, self.eps, self.max, self.tiny, self.resolution = self._LIMITS[name]
        self.min, self.smallest_normal, self.dtype = -self.max, self.tiny, name.removeprefix("torch.")

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer type."""

    _LIMITS = {"torch.uint8": (8, 0, 255), "torch.int32": (32, -(2**31), 2**31 - 1), "torch.int64": (64, -(2**63), 2**63 - 1)}

    def __init__(self, type):
        name = repr(type)
        if name not in self._LIMITS:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{name}'")
        self.bits, self.min, self.max = self._LIMITS[name]
        self.dtype = name.removeprefix("torch.")

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


class _Scope:
    """A `with` block, and a decorator, from a function that begins a scope."""

    def _begin(self):
        raise NotImplementedError

    def __enter__(self):
        self.__dict__.setdefault("_guards", []).append(self._begin())
        return self

    def __exit__(self, *error):
        self._guards.pop().end()
        return False

    def __call__(self, function):
        import functools

        if isinstance(function, type):
            raise AttributeError(f"{type(self).__name__} of a class is not here: PyTorch has it, this course does not")

        @functools.wraps(function)
        def scoped(*args, **kwargs):
            with type(self)(*getattr(self, "_args", ())):
                return function(*args, **kwargs)

        return scoped


class _SwitchOfGrad(_Scope):
    """`torch.no_grad` may decorate without parentheses."""

    def __new__(cls, function=None):
        self = object.__new__(cls)
        return self if function is None else self(function)

    def __init__(self, function=None):
        pass


class no_grad(_SwitchOfGrad):
    def _begin(self):
        return _torch.set_grad_enabled(False)


class enable_grad(_SwitchOfGrad):
    def _begin(self):
        return _torch.set_grad_enabled(True)


class inference_mode(_Scope):
    def __new__(cls, mode=True):
        self = object.__new__(cls)
        if callable(mode):
            self._args = ()
            self._mode = True
            return self(mode)
        return self

    def __init__(self, mode=True):
        self._mode, self._args = mode, (mode,)

    def _begin(self):
        return _torch.inference_mode(bool(self._mode))


class set_grad_enabled(_Scope):
    def __init__(self, mode):
        self._args = (mode,)
        self._before = _torch.is_grad_enabled()
        self._mode = bool(mode)
        _torch.set_grad_enabled(self._mode).keep()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        _torch.set_grad_enabled(self._before).keep()
        return False


def is_tensor(obj):
    return isinstance(obj, Tensor)


def is_storage(obj):
    return False


def typename(obj):
    return obj.type() if isinstance(obj, Tensor) else f"{type(obj).__module__}.{type(obj).__qualname__}"


def get_default_dtype():
    return _torch.float32


def set_default_dtype(d):
    if d is not _torch.float32:
        raise AttributeError("torch.set_default_dtype of another type than torch.float32 is not here: PyTorch has it, this course does not")


def initial_seed():
    return _torch.default_generator().initial_seed()


def seed():
    return _torch.default_generator().seed()


default_generator = _torch.default_generator()


def get_float32_matmul_precision():
    return "high" if _torch.matmul_allow_tf32() else "highest"


def set_float32_matmul_precision(precision):
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(
            "Setting the float32 matmul precision must be one of: highest, high, medium"
        )
    _torch.set_matmul_allow_tf32(precision != "highest")


def use_deterministic_algorithms(mode, *, warn_only=False):
    if warn_only:
        raise AttributeError("warn_only=True is not here: PyTorch has it, this course does not")
    _torch.use_deterministic_algorithms(bool(mode))


_threads = 1


def get_num_threads():
    return _threads


def set_num_threads(count):
    """Only `get_num_threads` depends on it."""
    global _threads
    if not isinstance(count, int) or count < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    _threads = count


def result_type(tensor1, tensor2):
    return (tensor1 + tensor2).dtype


def meshgrid(*tensors, indexing="ij"):
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if indexing not in ("ij", "xy"):
        raise RuntimeError('torch.meshgrid: indexing must be one of "xy" or "ij", but received: ' + str(indexing))
    if indexing == "xy" and len(tensors) >= 2:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    sizes = [tensor.numel() for tensor in tensors]
    grids = []
    for position, tensor in enumerate(tensors):
        shape = [1] * len(sizes)
        shape[position] = sizes[position]
        grids.append(tensor.reshape(shape).expand(sizes))
    if indexing == "xy" and len(grids) >= 2:
        grids = [grid.transpose(0, 1) for grid in grids]
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


class _C:
    """The few functions of `torch._C` that programs of the course call."""

    @staticmethod
    def _cuda_clearCublasWorkspaces():
        import _cuda

        _cuda.clear_cublas_workspaces()

    @staticmethod
    def _accelerator_setAllocatorSettings(settings):
        import _cuda

        _cuda.set_allocator_settings(settings)


def share_functions(names, functional):
    """Names of `torch.nn.functional` that `torch` has, too."""
    for name in (
        "celu celu_ selu prelu threshold hardshrink conv1d conv_transpose2d group_norm max_pool1d avg_pool1d "
        "adaptive_avg_pool1d pixel_shuffle rms_norm cosine_similarity pairwise_distance margin_ranking_loss "
        "hinge_embedding_loss cosine_embedding_loss triplet_margin_loss conv2d max_pool2d layer_norm"
    ).split():
        if hasattr(functional, name):
            names.setdefault(name, getattr(functional, name))
