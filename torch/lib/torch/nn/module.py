"""`torch.nn.Module`: the base class of networks and their layers."""

from collections import OrderedDict, namedtuple

import _torch
from _torch import Tensor, device as Device, dtype as DType

from .parameter import Buffer, Parameter


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class RemovableHandle:
    def __init__(self, hooks, key):
        self._hooks, self._key = hooks, key

    def remove(self):
        self._hooks.pop(self._key, None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


_next_hook = 0


def _add_hook(hooks, hook):
    global _next_hook
    _next_hook += 1
    hooks[_next_hook] = hook
    return RemovableHandle(hooks, _next_hook)


def _indented(text, spaces):
    first, *lines = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in lines)])


class Module:
    dump_patches = False
    training: bool

    def __init__(self, *args, **kwargs):
        if kwargs:
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
        if args:
            s = "s" if len(args) > 1 else ""
            raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        place = object.__setattr__
        place(self, "training", True)
        place(self, "_parameters", {})
        place(self, "_buffers", {})
        place(self, "_non_persistent_buffers_set", set())
        place(self, "_modules", {})
        place(self, "_forward_hooks", OrderedDict())
        place(self, "_forward_pre_hooks", OrderedDict())
        place(self, "_hooks_with_kwargs", set())

    def forward(self, *input):
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args, **kwargs):
        if not (self._forward_hooks or self._forward_pre_hooks):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args, kwargs):
        for key, hook in list(self._forward_pre_hooks.items()):
            if key in self._hooks_with_kwargs:
                result = hook(self, args, kwargs)
                if result is not None:
                    args, kwargs = result
            else:
                result = hook(self, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)
        output = self.forward(*args, **kwargs)
        for key, hook in list(self._forward_hooks.items()):
            given = (self, args, kwargs, output) if key in self._hooks_with_kwargs else (self, args, output)
            result = hook(*given)
            if result is not None:
                output = result
        return output

    # Attributes.

    def __setattr__(self, name, value):
        parameters = self.__dict__.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_torch_typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            modules = self.__dict__.get("_modules")
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name)
            modules[name] = value
        elif "_modules" in self.__dict__ and name in self._modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_torch_typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            self._modules[name] = value
        elif isinstance(value, Buffer):
            self._forget(name)
            self.register_buffer(name, value, value.persistent)
        elif "_buffers" in self.__dict__ and name in self._buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{_torch_typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
                )
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name):
        self.__dict__.pop(name, None)
        for store in ("_parameters", "_buffers", "_modules"):
            self.__dict__.get(store, {}).pop(name, None)
        self.__dict__.get("_non_persistent_buffers_set", set()).discard(name)

    def __getattr__(self, name):
        own = self.__dict__
        for store in ("_parameters", "_buffers", "_modules"):
            if store in own and name in own[store]:
                return own[store][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name):
        for store in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(store, {}):
                del self.__dict__[store][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        names = set(dir(type(self))) | set(self.__dict__) | set(self._parameters) | set(self._buffers) | set(self._modules)
        return sorted(name for name in names if not name[0].isdigit())

    def register_parameter(self, name, param):
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name(name, "parameter", self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_torch_typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and not param.is_leaf:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To express "
                f"'{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name(name, "buffer", self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_torch_typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name, module):
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_torch_typename(module)} is not a Module subclass")
        self._check_name(name, "module", self._modules)
        self._modules[name] = module

    register_module = add_module

    def _check_name(self, name, kind, store):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_torch_typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in store:
            raise KeyError(f"attribute '{name}' already exists")

    # Walks.

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        memo = set() if memo is None else memo
        if self not in memo:
            if remove_duplicate:
                memo.add(self)
            yield prefix, self
            for name, module in self._modules.items():
                if module is not None:
                    yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    def modules(self, remove_duplicate=True):
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self):
        memo = set()
        for name, module in self._modules.items():
            if module is not None and module not in memo:
                memo.add(module)
                yield name, module

    def children(self):
        for _, module in self.named_children():
            yield module

    def _named_members(self, members, prefix, recurse, remove_duplicate):
        memo = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, member in members(module):
                if member is None or member in memo:
                    continue
                if remove_duplicate:
                    memo.add(member)
                yield path + ("." if path else "") + name, member

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target):
        module = self
        for name in target.split(".") if target else []:
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def get_parameter(self, target):
        path, _, name = target.rpartition(".")
        return getattr(self.get_submodule(path), name)

    get_buffer = get_parameter

    def apply(self, fn):
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        for parameter in self.parameters():
            if parameter.grad is not None:
                if set_to_none:
                    parameter.grad = None
                else:
                    parameter.grad.detach_().zero_()

    # Moves.

    def _apply(self, fn, recurse=True):
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            grad = parameter.grad
            guard = _torch.set_grad_enabled(False)
            try:
                moved = fn(parameter.detach())
                moved_grad = None if grad is None else fn(grad)
            finally:
                guard.end()
            if grad is not None:
                parameter.grad = None
            parameter.data = moved
            if grad is not None:
                parameter.grad = moved_grad
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)

        def convert(tensor):
            kind = dtype if tensor.is_floating_point() else None
            format = memory_format if tensor.dim() == 4 else None
            return tensor.to(device, kind, non_blocking, memory_format=format)

        return self._apply(convert)

    def cpu(self):
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self, device=None):
        return self._apply(lambda tensor: tensor.cuda(device))

    def _cast(self, dtype):
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)

    def float(self):
        return self._cast(_torch.float32)

    def double(self):
        return self._cast(_torch.float64)

    def half(self):
        return self._cast(_torch.float16)

    def bfloat16(self):
        return self._cast(_torch.bfloat16)

    def type(self, dst_type):
        return self._apply(lambda tensor: tensor.type(dst_type))

    # State.

    def state_dict(self, *, destination=None, prefix="", keep_vars=False):
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = {"version": self._version}
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        return destination

    _version = 1

    def load_state_dict(self, state_dict, strict=True, assign=False):
        if not hasattr(state_dict, "items"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        if assign:
            raise AttributeError("load_state_dict(assign=True) is not here: PyTorch has it, this course does not")
        missing, unexpected, errors, known = [], [], [], set()
        for path, module in self.named_modules(remove_duplicate=False):
            prefix = path + "." if path else ""
            own = {**module._parameters, **{
                name: buffer for name, buffer in module._buffers.items() if name not in module._non_persistent_buffers_set
            }}
            for name, tensor in own.items():
                if tensor is None:
                    continue
                key = prefix + name
                known.add(key)
                if key not in state_dict:
                    missing.append(key)
                    continue
                given = state_dict[key]
                if not isinstance(given, Tensor):
                    errors.append(
                        f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint but '
                        f"received {type(given)}"
                    )
                    continue
                if given.shape != tensor.shape:
                    errors.append(
                        f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in current "
                        f"model is {tensor.shape}."
                    )
                    continue
                guard = _torch.set_grad_enabled(False)
                try:
                    tensor.copy_(given)
                finally:
                    guard.end()
        unexpected = [key for key in state_dict if key not in known]
        if strict:
            if unexpected:
                errors.insert(0, "Unexpected key(s) in state_dict: {}. ".format(", ".join(f'"{key}"' for key in unexpected)))
            if missing:
                errors.insert(0, "Missing key(s) in state_dict: {}. ".format(", ".join(f'"{key}"' for key in missing)))
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return _IncompatibleKeys(missing, unexpected)

    # Hooks.

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        if always_call:
            raise AttributeError("always_call=True is not here: PyTorch has it, this course does not")
        return self._hook(self._forward_hooks, hook, with_kwargs, prepend)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        return self._hook(self._forward_pre_hooks, hook, with_kwargs, prepend)

    def _hook(self, hooks, hook, with_kwargs, prepend):
        handle = _add_hook(hooks, hook)
        if with_kwargs:
            self._hooks_with_kwargs.add(handle._key)
        if prepend:
            hooks.move_to_end(handle._key, last=False)
        return handle

    def register_full_backward_hook(self, hook, prepend=False):
        raise AttributeError(
            "nn.Module has no `register_full_backward_hook` here: PyTorch has it, this course does not; "
            "`register_forward_hook` and `Tensor.register_hook` exist"
        )

    # Printing.

    def extra_repr(self):
        return ""

    def _get_name(self):
        return type(self).__name__

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indented(repr(module), 2)}" for name, module in self._modules.items()]
        text = self._get_name() + "("
        if lines or children:
            if len(lines) == 1 and not children:
                text += lines[0]
            else:
                text += "\n  " + "\n  ".join(lines + children) + "\n"
        return text + ")"

    def __deepcopy__(self, memo):
        import copy

        new = type(self).__new__(type(self))
        memo[id(self)] = new
        for name, value in self.__dict__.items():
            object.__setattr__(new, name, copy.deepcopy(value, memo))
        return new


def _torch_typename(value):
    if isinstance(value, Tensor):
        return value.type() if type(value) is Tensor else f"torch.nn.parameter.{type(value).__name__}"
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _parse_to(device=None, dtype=None, non_blocking=False, *, tensor=None, memory_format=None):
    if isinstance(device, Tensor):
        tensor, device = device, None
    if tensor is not None:
        return tensor.device, tensor.dtype, non_blocking, memory_format
    if isinstance(device, DType):
        device, dtype, non_blocking = None, device, dtype if isinstance(dtype, bool) else non_blocking
    if isinstance(dtype, bool):
        dtype, non_blocking = None, dtype
    if dtype is not None and not dtype.is_floating_point:
        raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
    if device is not None and not isinstance(device, (str, int, Device)):
        raise TypeError(f"to() received an invalid combination of arguments - got ({type(device).__name__})")
    return Device(device) if device is not None else None, dtype, non_blocking, memory_format


Module.__module__ = "torch.nn.modules.module"
