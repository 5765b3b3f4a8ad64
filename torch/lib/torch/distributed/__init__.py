"""`torch.distributed`: ranks, process groups and collectives."""

from _distributed import ProcessGroup, Work

from .._missing import module_getattr
from .collectives import (
    ReduceOp, all_gather, all_gather_into_tensor, all_reduce, all_to_all, all_to_all_single, barrier, broadcast, gather, irecv,
    isend, monitored_barrier, recv, reduce, reduce_scatter, reduce_scatter_tensor, scatter, send, P2POp, batch_isend_irecv,
)
from .groups import (
    GroupMember, destroy_process_group, get_backend, get_global_rank, get_group_rank, get_process_group_ranks, get_rank,
    get_world_size, group, init_process_group, is_initialized, new_group,
)
from .objects import all_gather_object, broadcast_object_list, gather_object, scatter_object_list


def is_available():
    return True


def is_nccl_available():
    return True


def is_gloo_available():
    return True


def is_mpi_available():
    return False


def is_ucc_available():
    return False


def is_torchelastic_launched():
    return False


__getattr__ = module_getattr("torch.distributed", globals())
