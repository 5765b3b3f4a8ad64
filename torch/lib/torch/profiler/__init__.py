"""`torch.profiler`: what the host called, and what the GPUs did."""

import _profiler
import _torch

from .._missing import module_getattr


class ProfilerActivity:
    CPU, CUDA = "ProfilerActivity.CPU", "ProfilerActivity.CUDA"


class _Event:
    """A call of the host, or work of a GPU. Times are in microseconds, and modelled on a simulated GPU."""

    def __init__(self, name, on_gpu, start, time):
        from torch.autograd import DeviceType

        self.name = self.key = name
        self.on_gpu = on_gpu
        self.device_type = DeviceType.CUDA if on_gpu else DeviceType.CPU
        self.device_time_total, self.cpu_time_total = (time, 0.0) if on_gpu else (0.0, time)
        self.start, self.count = start, 1

    device_time = property(lambda self: self.device_time_total / self.count)
    cpu_time = property(lambda self: self.cpu_time_total / self.count)
    # Calls do not contain each other here.
    self_device_time_total = property(lambda self: self.device_time_total)
    self_cpu_time_total = property(lambda self: self.cpu_time_total)

    def __repr__(self):
        return f"<{self.name}, {self.device_time or self.cpu_time:.3f} us>"


class _Averages(list):
    def table(self, sort_by=None, row_limit=100):
        key = (sort_by or "device_time_total").replace("cuda", "device")
        rows = sorted(self, key=lambda event: getattr(event, key), reverse=True)
        rows = rows if row_limit < 0 else rows[:row_limit]
        lines = [f"{'Name':40}  {'CPU total':>12}  {'CUDA total':>12}  {'# of Calls':>10}"]
        for event in rows:
            lines.append(
                f"{event.key[:40]:40}  {event.cpu_time_total:>10.3f}us  {event.device_time_total:>10.3f}us  {event.count:>10}"
            )
        if _torch.has_simulated_time():
            lines.append("The times are modelled.")
        return "\n".join(lines)

    __str__ = table


class profile:
    def __init__(
        self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False, with_stack=False,
        with_flops=False, with_modules=False, use_cuda=None,
    ):
        if schedule is not None:
            raise AttributeError("profile(schedule=…) is not here: PyTorch has it, this course does not")
        for name, value in {
            "record_shapes": record_shapes, "profile_memory": profile_memory, "with_stack": with_stack,
            "with_flops": with_flops, "with_modules": with_modules, "use_cuda": use_cuda,
        }.items():
            if value:
                raise AttributeError(f"profile({name}=True) is not here: PyTorch has it, this course does not")
        self._records_gpu = activities is None or ProfilerActivity.CUDA in activities
        self._on_trace_ready, self._events, self._number = on_trace_ready, [], None

    def start(self):
        self._number = _profiler.start()

    def stop(self):
        if self._number is not None:
            events = [_Event(*event) for event in _profiler.stop(self._number)]
            self._events = [event for event in events if self._records_gpu or not event.on_gpu]
            self._number = None
            if self._on_trace_ready is not None:
                self._on_trace_ready(self)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def step(self):
        pass

    def events(self):
        return self._events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        if group_by_input_shape or group_by_stack_n:
            raise AttributeError("key_averages() groups by name only: PyTorch has other groups, this course does not")
        groups = {}
        for event in self._events:
            key = (event.name, event.on_gpu)
            if key not in groups:
                groups[key] = _Event(event.name, event.on_gpu, 0.0, 0.0)
                groups[key].count = 0
            total = groups[key]
            total.count += 1
            total.cpu_time_total += event.cpu_time_total
            total.device_time_total += event.device_time_total
        return _Averages(groups.values())

    def export_chrome_trace(self, path):
        raise AttributeError("export_chrome_trace is not here: run the program with --trace FILE, which writes the same")


class record_function:
    def __init__(self, name, args=None):
        self._name, self._guards = name, []

    def __enter__(self):
        self._guards.append(_torch.record_function(self._name))
        return self

    def __exit__(self, *error):
        self._guards.pop().end()

    def __call__(self, function):
        def scoped(*args, **kwargs):
            with record_function(self._name):
                return function(*args, **kwargs)

        return scoped


__getattr__ = module_getattr("torch.profiler", globals())
