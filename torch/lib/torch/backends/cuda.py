"""`torch.backends.cuda`"""

import _torch


def is_built():
    return True


class _Matmul:
    @property
    def allow_tf32(self):
        return _torch.matmul_allow_tf32()

    @allow_tf32.setter
    def allow_tf32(self, allow):
        _torch.set_matmul_allow_tf32(bool(allow))

    def __setattr__(self, name, value):
        if name != "allow_tf32":
            raise AttributeError(f"torch.backends.cuda.matmul has no `{name}` here: PyTorch has it, this course does not")
        object.__setattr__(self, name, value)


matmul = _Matmul()
