"""`torch.cuda`: the GPUs of the machine."""

import warnings

import _cuda
import _torch
from _cuda import (
    Event, Stream, caching_allocator_enable, device_count, get_arch_list, is_available, list_gpu_processes, manual_seed,
    manual_seed_all, memory_snapshot,
)

from .._missing import module_getattr
from . import amp, memory

OutOfMemoryError = None  # set by torch/__init__.py


def _index(device, optional=False):
    """The number of a device. None is the current one."""
    if device is None:
        return None if optional else _cuda.current_device()
    if isinstance(device, str):
        device = _torch.device(device)
    if isinstance(device, _torch.device):
        if device.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {device}")
        device = device.index
        if device is None:
            return None if optional else _cuda.current_device()
    if not isinstance(device, int):
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return device


def current_device():
    return _cuda.current_device()


def set_device(device):
    index = _index(device)
    if index >= 0:
        _cuda.set_device(index)


class device:
    """A `with` block on another GPU."""

    def __init__(self, device):
        self.idx, self._guards = _index(device, True), []

    def __enter__(self):
        self._guards.append(None if self.idx is None or self.idx < 0 else _cuda.device(self.idx))

    def __exit__(self, *error):
        guard = self._guards.pop()
        if guard is not None:
            guard.end()
        return False


class device_of(device):
    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def get_device_name(device=None):
    return _cuda.get_device_name(_index(device))


def get_device_capability(device=None):
    return _cuda.get_device_capability(_index(device))


class _CudaDeviceProperties:
    def __init__(self, properties):
        self.__dict__.update(properties)

    def __repr__(self):
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, multi_processor_count={self.multi_processor_count}, "
            f"L2_cache_size={self.L2_cache_size // 2**20}MB)"
        )

    def __getattr__(self, name):
        raise AttributeError(f"the properties of a device have no `{name}` here; {', '.join(sorted(self.__dict__))} exist")


def get_device_properties(device=None):
    return _CudaDeviceProperties(_cuda.get_device_properties(_index(device)))


def can_device_access_peer(device, peer_device):
    return _cuda.can_device_access_peer(_index(device), _index(peer_device))


def is_bf16_supported(including_emulation=True):
    return is_available() and _cuda.is_bf16_supported(including_emulation)


def is_initialized():
    return is_available()


def init():
    _cuda.current_device()


def synchronize(device=None):
    _cuda.synchronize(_index(device, True))


def ipc_collect():
    pass


def current_stream(device=None):
    return _cuda.current_stream(_index(device))


def default_stream(device=None):
    return _cuda.default_stream(_index(device))


class stream:
    """A `with` block whose work goes to another stream."""

    def __init__(self, stream):
        self.stream, self._guards = stream, []

    def __enter__(self):
        self._guards.append(None if self.stream is None else _cuda.stream(self.stream))

    def __exit__(self, *error):
        guard = self._guards.pop()
        if guard is not None:
            guard.end()
        return False


def set_stream(stream):
    if stream is not None:
        _cuda.stream(stream).keep()


def memory_allocated(device=None):
    return _cuda.memory_allocated(_index(device, True))


def max_memory_allocated(device=None):
    return _cuda.max_memory_allocated(_index(device, True))


def memory_reserved(device=None):
    return _cuda.memory_reserved(_index(device, True))


def max_memory_reserved(device=None):
    return _cuda.max_memory_reserved(_index(device, True))


def _needs_gpu(name):
    if not is_available():
        raise RuntimeError(f"invalid argument to {name}")


def reset_peak_memory_stats(device=None):
    _needs_gpu("reset_peak_memory_stats")
    _cuda.reset_peak_memory_stats(_index(device, True))


def reset_accumulated_memory_stats(device=None):
    _needs_gpu("reset_accumulated_memory_stats")
    _cuda.reset_accumulated_memory_stats(_index(device, True))


def memory_stats(device=None):
    from collections import OrderedDict

    return OrderedDict(_cuda.memory_stats(_index(device, True)))


def memory_summary(device=None, abbreviated=False):
    return _cuda.memory_summary(_index(device, True), bool(abbreviated))


def empty_cache():
    _cuda.empty_cache()


def mem_get_info(device=None):
    return _cuda.mem_get_info(_index(device, True))


def set_per_process_memory_fraction(fraction, device=None):
    if not isinstance(fraction, (int, float)):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if fraction < 0 or fraction > 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _cuda.set_per_process_memory_fraction(float(fraction), _index(device, True))


def get_per_process_memory_fraction(device=None):
    return _cuda.get_per_process_memory_fraction(_index(device, True))


def _renamed(old, new, function):
    def deprecated(device=None):
        warnings.warn(f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning, stacklevel=2)
        return function(device)

    deprecated.__name__ = old
    return deprecated


memory_cached = _renamed("memory_cached", "memory_reserved", memory_reserved)
max_memory_cached = _renamed("max_memory_cached", "max_memory_reserved", max_memory_reserved)


def _resets_all(name):
    def deprecated(device=None):
        warnings.warn(
            f"torch.cuda.{name} now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
            FutureWarning,
            stacklevel=2,
        )
        return reset_peak_memory_stats(device)

    deprecated.__name__ = name
    return deprecated


reset_max_memory_allocated = _resets_all("reset_max_memory_allocated")
reset_max_memory_cached = _resets_all("reset_max_memory_cached")


def utilization(device=None):
    return _cuda.utilization(_index(device, True))


def memory_usage(device=None):
    return _cuda.memory_usage(_index(device, True))


def device_memory_used(device=None):
    return _cuda.device_memory_used(_index(device, True))


def temperature(device=None):
    return _cuda.temperature(_index(device, True))


def power_draw(device=None):
    return _cuda.power_draw(_index(device, True))


def initial_seed():
    return _torch.default_generator().initial_seed()


def get_rng_state(device="cuda"):
    return _cuda.get_rng_state(_index(device))


def set_rng_state(new_state, device="cuda"):
    _cuda.set_rng_state(new_state, _index(device))


def get_rng_state_all():
    return [_cuda.get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states):
    for index, state in enumerate(new_states):
        _cuda.set_rng_state(state, index)


_MODES = ("default", "warn", "error")


def set_sync_debug_mode(debug_mode):
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        debug_mode = _MODES.index(debug_mode)
    _cuda.set_sync_debug_mode(debug_mode)


def get_sync_debug_mode():
    return _cuda.get_sync_debug_mode()


__getattr__ = module_getattr("torch.cuda", globals())
