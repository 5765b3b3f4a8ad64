"""Transforms of pictures."""

from _torch import Tensor, float32, tensor


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, picture):
        for transform in self.transforms:
            picture = transform(picture)
        return picture

    def __repr__(self):
        return "Compose(\n" + "\n".join(f"    {transform}" for transform in self.transforms) + "\n)"


class ToTensor:
    def __call__(self, picture):
        return picture.pixels.to(float32).div(255)

    def __repr__(self):
        return "ToTensor()"


class Normalize:
    def __init__(self, mean, std, inplace=False):
        self.mean, self.std, self.inplace = mean, std, inplace

    def __call__(self, x):
        if not isinstance(x, Tensor):
            raise TypeError(f"img should be Tensor Image. Got {type(x)}")
        mean = tensor(self.mean, dtype=x.dtype, device=x.device).view(-1, 1, 1)
        std = tensor(self.std, dtype=x.dtype, device=x.device).view(-1, 1, 1)
        return (x if self.inplace else x.clone()).sub_(mean).div_(std)

    def __repr__(self):
        return f"Normalize(mean={self.mean}, std={self.std})"


class Lambda:
    def __init__(self, lambd):
        self.lambd = lambd

    def __call__(self, picture):
        return self.lambd(picture)


def __getattr__(name):
    raise AttributeError(
        f"torchvision.transforms has no `{name}` here; `Compose`, `ToTensor`, `Normalize` and `Lambda` exist"
    )
