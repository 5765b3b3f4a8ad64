"""`torch.distributed`: this program is one process."""

from .._missing import module_getattr


def is_available():
    return True


def is_initialized():
    return False


def _not_here():
    raise NotImplementedError(
        "torch.distributed needs several processes, and a program in Python is one here: "
        "PyTorch has it, this course shows it in Rust (cargo run --bin lab-10)"
    )


def init_process_group(*args, **kwargs):
    _not_here()


def get_rank(group=None):
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


get_world_size = get_rank


def destroy_process_group(group=None):
    pass


__getattr__ = module_getattr("torch.distributed", globals())
