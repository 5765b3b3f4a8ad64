"""Collectives and messages. Those that the course's library does not have are made of those that it has."""

import warnings

import _distributed
import _torch

from .groups import get_group_rank, get_process_group_ranks, get_rank, get_world_size


class _Op:
    def __init__(self, name, number):
        self.name, self._number = name, number

    def __repr__(self):
        return f"<RedOpType.{self.name}: {self._number}>"

    def __str__(self):
        return f"RedOpType.{self.name}"


class ReduceOp:
    """How the ranks' numbers become one."""


for _number, _name in enumerate(["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]):
    setattr(ReduceOp, _name, _Op(_name, _number))


class _Work:
    """A collective under way, with something to do after it."""

    def __init__(self, work, after):
        self._work, self._after = work, after

    def wait(self, timeout=None):
        self._work.wait()
        after, self._after = self._after, None
        if after is not None:
            with _no_grad():
                after()
        return True

    def is_completed(self):
        return self._work.is_completed()


def _no_grad():
    from torch import no_grad

    return no_grad()


def _done(work, async_op):
    return work if async_op else None


def _after(work, async_op, after):
    work = _Work(work, after)
    if async_op:
        return work
    work.wait()


def _check_tensor(value, name):
    if not isinstance(value, _torch.Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n             but got {type(value)} instead."
        )


def _check_list(value, name):
    start = f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got {type(value)}"
    if not isinstance(value, list):
        raise TypeError(f"{start} instead.")
    if not all(isinstance(item, _torch.Tensor) for item in value):
        raise TypeError(f"{start} with elements of type {[type(item) for item in value]}.")


def _check_types(*tensors):
    last = None
    for tensor in tensors:
        if last is not None and tensor.dtype is not last:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {last} and  {tensor.dtype}")
        last = tensor.dtype


def _is_outside(group, name):
    """Whether this rank is not in the group, which PyTorch only warns of."""
    if get_rank(group) >= 0:
        return False
    warnings.warn(f"Running {name} on global rank {get_rank()} which does not belong to the given group.")
    return True


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    _check_tensor(tensor, "tensor")
    return _done(_distributed.all_reduce(tensor, op.name, group, async_op), async_op)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    _check_tensor(tensor, "tensor")
    return _done(_distributed.broadcast(tensor, _root(group, src, group_src), group, async_op), async_op)


def _root(group, rank, group_rank, default=None):
    """The rank of a root in the world."""
    if rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if group_rank is not None:
        return get_process_group_ranks(group)[group_rank]
    if rank is None and default is None:
        raise ValueError("Must specify global_rank or group_rank")
    return default if rank is None else rank


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    _check_tensor(input_tensor, "input_tensor")
    _check_tensor(output_tensor, "output_tensor")
    return _done(_distributed.all_gather_into_tensor(output_tensor, input_tensor, group, async_op), async_op)


def _gathered(tensor, group):
    """The work of gathering, and the parts that it fills."""
    row = tensor.detach().contiguous().reshape(-1)
    rows = row.new_empty(get_world_size(group) * row.numel())
    work = _distributed.all_gather_into_tensor(rows, row, group, True)
    return work, [part.reshape(tensor.shape) for part in rows.reshape(get_world_size(group), -1).unbind(0)]


def _check_gathered(tensors, tensor, group, name):
    what = f"ProcessGroupGloo::{name}: invalid"
    if len(tensors) != get_world_size(group):
        raise RuntimeError(
            f"{what} output tensor list at index 0 (expected length {get_world_size(group)}, got {len(tensors)})"
        )
    for index, other in enumerate(tensors):
        if other.shape != tensor.shape:
            sizes = [f"({', '.join(map(str, shape))})" for shape in (tensor.shape, other.shape)]
            raise RuntimeError(f"{what} tensor size at index {index} (expected {sizes[0]}, got {sizes[1]})")


def _copy_all(targets, parts):
    for target, part in zip(targets, parts):
        target.copy_(part)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    _check_list(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    _check_types(*tensor_list, tensor)
    if _is_outside(group, "all_gather"):
        return None
    _check_gathered(tensor_list, tensor, group, "allgather")
    work, parts = _gathered(tensor, group)
    return _after(work, async_op, lambda: _copy_all(tensor_list, parts))


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    _check_tensor(tensor, "tensor")
    if gather_list:
        _check_list(gather_list, "gather_list")
    else:
        gather_list = []
    _check_types(tensor, *gather_list)
    if _is_outside(group, "gather"):
        return None
    if get_rank() == _root(group, dst, group_dst, 0):
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _check_gathered(gather_list, tensor, group, "gather")
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    work, parts = _gathered(tensor, group)
    return _after(work, async_op, lambda: _copy_all(gather_list, parts))


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    _check_tensor(tensor, "tensor")
    if scatter_list:
        _check_list(scatter_list, "scatter_list")
    else:
        scatter_list = []
    _check_types(tensor, *scatter_list)
    if _is_outside(group, "scatter"):
        return None
    root, size = _root(group, src, group_src, 0), get_world_size(group)
    rows = tensor.new_empty((size, tensor.numel()))
    if get_rank() == root:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        _check_gathered(scatter_list, tensor, group, "scatter")
        with _no_grad():
            _copy_all(rows.unbind(0), [part.reshape(-1) for part in scatter_list])
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    work = _distributed.broadcast(rows, root, group, True)
    return _after(work, async_op, lambda: tensor.copy_(rows[get_group_rank(group, get_rank())].reshape(tensor.shape)))


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """The other ranks keep their numbers. PyTorch leaves open what becomes of them."""
    _check_tensor(tensor, "tensor")
    if _is_outside(group, "reduce"):
        return None
    root, result = _root(group, dst, group_dst), tensor.detach().clone()
    get_group_rank(group, root)
    work = _distributed.all_reduce(result, op.name, group, True)
    return _after(work, async_op, lambda: tensor.copy_(result) if get_rank() == root else None)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    _check_tensor(output, "output")
    _check_list(input_list, "input_list")
    _check_types(output, *input_list)
    if group is not None or async_op:
        raise AttributeError("reduce_scatter with a group or async_op is not here; reduce_scatter_tensor has both")
    _distributed.reduce_scatter(output, input_list, op.name)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    return _done(_distributed.reduce_scatter_tensor(output, input, op.name, group, async_op), async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    _check_list(output_tensor_list, "output_tensor_list")
    _check_list(input_tensor_list, "input_tensor_list")
    _check_types(*output_tensor_list, *input_tensor_list)
    if not input_tensor_list[0].is_cuda:
        raise RuntimeError("Backend gloo does not support alltoall")
    return _all_to_all(output_tensor_list, input_tensor_list, group, async_op)


def _all_to_all(outputs, inputs, group, async_op):
    if len({tensor.shape for tensor in (*outputs, *inputs)}) != 1:
        raise AttributeError("all_to_all of tensors of several sizes is not here: PyTorch has it, this course does not")
    own = get_group_rank(group, get_rank())
    work, parts = _gathered(_torch.stack([tensor.detach() for tensor in inputs]), group)
    return _after(work, async_op, lambda: _copy_all(outputs, [part[own] for part in parts]))


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    if output_split_sizes is not None or input_split_sizes is not None:
        raise AttributeError("all_to_all_single with split sizes is not here: PyTorch has it, this course does not")
    size = get_world_size(group)
    return _all_to_all(list(output.chunk(size)), list(input.chunk(size)), group, async_op)


def barrier(group=None, async_op=False, device_ids=None):
    if group is None and not async_op:
        return _distributed.barrier()
    return _done(_distributed.all_reduce(_torch.zeros(1), "SUM", group, async_op), async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    barrier(group)


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    _check_tensor(tensor, "tensor")
    return _distributed.isend(tensor, _peer(group, dst, group_dst, tag))


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    _check_tensor(tensor, "tensor")
    return _distributed.irecv(tensor, _peer(group, src, group_src, tag))


def _peer(group, rank, group_rank, tag):
    if tag:
        raise AttributeError("a message with a tag is not here: PyTorch has it, this course does not")
    if rank is None and group_rank is None:
        raise AttributeError("recv from any rank is not here: PyTorch has it, this course does not; say src")
    return _root(group, rank, group_rank)


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    isend(tensor, dst, group, tag, group_dst).wait()


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Returns the rank of the sender."""
    irecv(tensor, src, group, tag, group_src).wait()
    return _root(group, src, group_src)


class P2POp:
    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = op, tensor, peer, group, tag, group_peer


def batch_isend_irecv(p2p_op_list):
    return [op.op(op.tensor, op.peer, op.group, op.tag, op.group_peer) for op in p2p_op_list]
