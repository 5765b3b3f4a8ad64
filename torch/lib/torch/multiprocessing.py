"""`torch.multiprocessing`: other processes of the program. Here each has an interpreter of its own, which loads the program
again, as with the start method "spawn". All that have been started begin when the program waits for one of them, or becomes
a rank itself: they are the ranks of one world."""

import _parcel
import _processes
import _torch

from ._missing import module_getattr

_waiting, _started, _number = [], [], 0
# Of a child: its place among the processes that began with it, and their number.
_slot, _count = None, None
_start_method = None


class Process:
    def __init__(self, group=None, target=None, name=None, args=(), kwargs={}, *, daemon=None):
        global _number
        if group is not None:
            raise AssertionError("group argument must be None for now")
        _number += 1
        self.name = str(name) if name else f"{type(self).__name__}-{_number}"
        self.daemon, self.pid, self._end = bool(daemon), None, None
        self._target, self._args, self._kwargs, self._batch, self._place = target, tuple(args), dict(kwargs), None, None

    _forks = True

    def run(self):
        if self._target is not None:
            self._target(*self._args, **self._kwargs)

    def start(self):
        if self.pid is not None:
            raise AssertionError("cannot start a process twice")
        if _processes.is_child():
            raise RuntimeError(
                "An attempt has been made to start a new process before the current process has finished its bootstrapping "
                "phase: put the part of the program that starts processes under `if __name__ == '__main__':`. Here a process "
                "loads the program again, and cannot start others."
            )
        if _processes.program()[0] == "<stdin>":
            raise NotImplementedError("a function from the prompt cannot run in another process: write the program to a file")
        import os

        is_plain = type(self) is Process or type(self) in _KINDS
        call = (self._target, self._args, self._kwargs) if is_plain and self._target is not None else (self.run, (), {})
        state = _torch.get_rng_state() if self._forks else None
        self._parcel = (_parcel.pack(dict(os.environ)), state, _parcel.pack(call))
        self.pid = 1 + _number
        _waiting.append(self)
        _started.append(self)

    def _wait(self, timeout):
        """Its end, or None."""
        if self._batch is None:
            _launch()
        if self._end is None:
            _processes.leave()  # The others cannot wait for this one any more.
            self._end = self._batch.wait(self._place, timeout)
        return self._end

    def join(self, timeout=None):
        if self.pid is None:
            raise AssertionError("can only join a started process")
        self._wait(None if timeout is None else float(timeout))

    def is_alive(self):
        return self.pid is not None and self._wait(0.0) is None

    @property
    def exitcode(self):
        if self.pid is None or self._batch is None:
            return None
        end = self._end or self._batch.wait(self._place, 0.0)
        return None if end is None else end[0]

    def kill(self):
        """Does not wait for its end any more."""
        if self in _started:
            _started.remove(self)

    terminate = kill

    def close(self):
        pass

    def __repr__(self):
        state = "initial" if self.pid is None else "started" if self.exitcode is None else f"stopped exitcode={self.exitcode}"
        return f"<{type(self).__name__} name='{self.name}' {state}>"


class _SpawnProcess(Process):
    _forks = False


_SpawnProcess.__name__ = _SpawnProcess.__qualname__ = "SpawnProcess"
_KINDS = (Process, _SpawnProcess)


def _launch(own_rank=None):
    """Lets all processes that have been started begin. With `own_rank`, this program is a rank among them."""
    waiting = list(_waiting)
    _waiting.clear()
    count = len(waiting) + (own_rank is not None)
    batch = _processes.batch(count)
    places = [place for place in range(count) if place != own_rank]
    for place, process in zip(places, waiting):
        process._batch, process._place = batch, place
        batch.start(place, (process.name, place, count, *process._parcel))
    if own_rank is not None:
        batch.join(own_rank)


def _begin_child(name, slot, count):
    global _slot, _count
    _slot, _count = slot, count


def _become_rank(rank, world_size):
    """Makes this program the rank of a world, with the processes that it has started."""
    if _processes.is_child():
        if world_size != _count:
            raise NotImplementedError(
                f"world_size is {world_size}, but {_count} processes began together: here they are all the ranks of one world"
            )
        if rank != _slot:
            raise NotImplementedError(
                f"this process has rank {_slot} here, not {rank}: ranks are numbered in the order in which they were started"
            )
        return
    count = len(_waiting) + 1
    if world_size != count:
        raise NotImplementedError(
            f"world_size is {world_size}, but this program and the processes that it has started are {count}: "
            "torch.multiprocessing.spawn starts ranks (a program cannot wait for ranks from outside here)"
        )
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is not in a world of {world_size}")
    _launch(rank)


def _wait_for_all():
    """At the end of the program."""
    _processes.leave()
    for process in list(_started):
        if not process.daemon:
            process._wait(None)


class Empty(Exception):
    """A queue has no item."""


Empty.__module__ = "_queue"


class Queue:
    def __init__(self, maxsize=0):
        if maxsize > 0:
            raise AttributeError("a queue with a maximal size is not here: PyTorch has it, this course does not")
        self._number = _processes.new_queue()

    def put(self, obj, block=True, timeout=None):
        _processes.put(self._number, _parcel.pack(obj))

    def put_nowait(self, obj):
        self.put(obj)

    def get(self, block=True, timeout=None):
        if not block:
            timeout = 0.0
        if _processes.is_rank() and _processes.is_child():
            found = _processes.get(self._number, 0.0)
            if found is None and timeout != 0.0:
                raise NotImplementedError(
                    "a process cannot wait for a queue here, because one process runs at a time: torch.distributed.recv waits "
                    "for another rank"
                )
        else:
            if _waiting:
                _launch()
            _processes.leave()
            found = _processes.get(self._number, None if timeout is None else float(timeout))
        if found is None:
            raise Empty
        return _parcel.unpack(found[0])

    def get_nowait(self):
        return self.get(False)

    def qsize(self):
        return _processes.length(self._number)

    def empty(self):
        return self.qsize() == 0

    def full(self):
        return False

    def close(self):
        pass

    def join_thread(self):
        pass

    cancel_join_thread = join_thread


SimpleQueue = Queue


class ProcessException(Exception):
    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """A process has raised an exception."""


class ProcessExitedException(ProcessException):
    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


for _kind in (ProcessException, ProcessRaisedException, ProcessExitedException):
    _kind.__module__ = "torch.multiprocessing.spawn"


class ProcessContext:
    def __init__(self, processes):
        self.processes = processes

    def pids(self):
        return [process.pid for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Whether all have ended. Raises the first error."""
        ends = [process._wait(None if timeout is None else float(timeout)) for process in self.processes]
        failed = [(end[2], rank) for rank, end in enumerate(ends) if end is not None and end[0]]
        if not failed:
            return None not in ends
        _, rank = min(failed)
        status, failure, _ = ends[rank]
        pid = self.processes[rank].pid
        if failure:
            text = f"\n\n-- Process {rank} terminated with the following error:\n{failure}"
            raise ProcessRaisedException(text, rank, pid)
        raise ProcessExitedException(f"process {rank} terminated with exit code {status}", rank, pid, status)


SpawnContext = ProcessContext


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    if nprocs < 1:
        raise ValueError(f"spawn needs at least one process, not {nprocs}")
    processes = []
    for rank in range(nprocs):
        process = _SpawnProcess(target=fn, args=(rank, *args), name=f"spawn-{rank}", daemon=daemon)
        process.start()
        processes.append(process)
    context = ProcessContext(processes)
    if not join:
        return context
    while not context.join():
        pass


start_processes = spawn


class _Context:
    Queue, SimpleQueue = Queue, SimpleQueue

    def __init__(self, method):
        self._method = method
        self.Process = Process if method == "fork" else _SpawnProcess

    def get_start_method(self, allow_none=False):
        return self._method

    def __getattr__(self, name):
        raise AttributeError(f"a context of torch.multiprocessing has no `{name}` here; Process, Queue and SimpleQueue exist")


def get_all_start_methods():
    return ["fork", "spawn", "forkserver"]


def get_context(method=None):
    method = method or get_start_method()
    if method not in get_all_start_methods():
        raise ValueError(f"cannot find context for '{method}'")
    return _Context(method)


def set_start_method(method, force=False):
    global _start_method
    if _start_method is not None and not force:
        raise RuntimeError("context has already been set")
    get_context(method)
    _start_method = method


def get_start_method(allow_none=False):
    return _start_method or "fork"


def set_sharing_strategy(new_strategy):
    pass


def get_sharing_strategy():
    return "file_descriptor"


def cpu_count():
    return 1


__getattr__ = module_getattr("torch.multiprocessing", globals())
