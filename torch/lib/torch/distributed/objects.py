"""Collectives of Python's objects. A rank keeps its object for the others, and sends them its number."""

import _parcel
import _processes
import _torch

from . import collectives
from .groups import get_group_rank, get_process_group_ranks, get_rank, get_world_size


def _own_device(group):
    import _cuda
    from .groups import get_backend

    return f"cuda:{_cuda.current_device()}" if get_backend(group) == "nccl" else "cpu"


def _numbers_of_all(obj, group):
    number = _processes.keep(_parcel.pack(obj, False), get_world_size(group))
    own = _torch.tensor([number], device=_own_device(group))
    numbers = [own.clone() for _ in range(get_world_size(group))]
    collectives.all_gather(numbers, own, group)
    return [number.item() for number in numbers]


def _objects_of_all(obj, group):
    return [_parcel.unpack(_processes.kept(number)) for number in _numbers_of_all(obj, group)]


def all_gather_object(object_list, obj, group=None):
    if collectives._is_outside(group, "all_gather_object"):
        return
    for index, item in enumerate(_objects_of_all(obj, group)):
        object_list[index] = item


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    if collectives._is_outside(group, "gather_object"):
        return
    is_root = get_rank() == collectives._root(group, dst, group_dst, 0)
    if is_root and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not is_root and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    for index, item in enumerate(_objects_of_all(obj, group)):
        if is_root:
            object_gather_list[index] = item


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    if collectives._is_outside(group, "broadcast_object_list"):
        return
    root = collectives._root(group, src, group_src, 0)
    object_list[:] = _objects_of_all(list(object_list), group)[get_group_rank(group, root)]


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None):
    if collectives._is_outside(group, "scatter_object_list"):
        return
    root = collectives._root(group, src, group_src, 0)
    all_lists = _objects_of_all(scatter_object_input_list if get_rank() == root else None, group)
    own = get_process_group_ranks(group).index(get_rank())
    scatter_object_output_list[0] = all_lists[get_group_rank(group, root)][own]
