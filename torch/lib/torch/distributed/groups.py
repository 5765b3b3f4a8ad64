"""Process groups, and how a program becomes a rank."""

import os

import _cuda
import _distributed
import _processes

from .. import multiprocessing

_UNINITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."
_backend = None


class GroupMember:
    WORLD = None
    NON_GROUP_MEMBER = object()


class group(GroupMember):
    pass


def _of_environment(variable):
    value = os.environ.get(variable)
    if not value:
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {variable} expected, but not set"
        )
    return value


def _rendezvous(init_method, rank, world_size):
    """The rank and the number of ranks, from the arguments or the environment."""
    scheme = (init_method or "env://").split("://")[0]
    if scheme == "env":
        rank = int(_of_environment("RANK")) if rank < 0 else rank
        world_size = int(_of_environment("WORLD_SIZE")) if world_size < 0 else world_size
        _of_environment("MASTER_ADDR")
        int(_of_environment("MASTER_PORT"))
        return rank, world_size
    if scheme not in ("tcp", "file"):
        raise RuntimeError(f"No rendezvous handler for {scheme}://")
    for name, value in (("rank", rank), ("world size", world_size)):
        if value < 0:
            raise ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {name} parameter missing")
    return rank, world_size


def _named(backend):
    name = str(backend or "").lower()
    names = [part.split(":")[-1] for part in name.split(",")] if name else []
    for part in names:
        if part not in ("nccl", "gloo"):
            raise AssertionError(f"Unknown c10d backend type {part.upper()}")
    if names == ["nccl"] and not _cuda.is_available():
        raise ValueError("ProcessGroupNCCL is only supported with GPUs, no GPUs found!")
    return name if names and ":" not in name else ""


def init_process_group(
    backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="", pg_options=None, device_id=None
):
    global _backend
    if _distributed.is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None or pg_options is not None:
        raise AttributeError("init_process_group with a store or pg_options is not here: PyTorch has it, this course does not")
    rank, world_size = _rendezvous(init_method, rank, world_size)
    name = _named(backend)
    multiprocessing._become_rank(rank, world_size)
    _distributed.init(name, None if timeout is None else timeout.total_seconds())
    _backend = name or "undefined"


def destroy_process_group(group=None):
    if group is not None:
        return  # A group takes nothing here.
    if not _distributed.is_initialized():
        raise AssertionError("Process group cannot be None")
    _distributed.destroy()
    if not _processes.is_child():
        _processes.leave()


def is_initialized():
    return _distributed.is_initialized()


def get_rank(group=None):
    return _distributed.rank() if group is None else -1 if group is GroupMember.NON_GROUP_MEMBER else group.rank()


def get_world_size(group=None):
    return _distributed.world_size() if group is None else -1 if group is GroupMember.NON_GROUP_MEMBER else group.size()


def get_backend(group=None):
    _distributed.rank()
    return _backend


def new_group(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None):
    size = _distributed.world_size()
    if timeout is not None or backend not in (None, _backend) or use_local_synchronization:
        raise AttributeError(
            "new_group with a timeout, another backend or use_local_synchronization is not here: PyTorch has it, this course does not"
        )
    return _distributed.new_group(list(range(size)) if ranks is None else list(ranks))


def get_process_group_ranks(group):
    return list(range(get_world_size())) if group is None else group.ranks()


def get_group_rank(group, global_rank):
    ranks = get_process_group_ranks(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group, group_rank):
    ranks = get_process_group_ranks(group)
    if group_rank not in range(len(ranks)):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]
