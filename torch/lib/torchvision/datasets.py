"""Data sets with the names and sizes of torchvision's. Nothing is fetched: the pictures are made here, in ten classes."""

import warnings

import _vision

from torch.utils.data import Dataset


class Picture:
    """Stands for the PIL image that torchvision gives to a transform."""

    def __init__(self, pixels):
        self.pixels = pixels
        self.size = (pixels.shape[2], pixels.shape[1])
        self.mode = "L" if pixels.shape[0] == 1 else "RGB"

    def __repr__(self):
        return f"<a picture, mode={self.mode} size={self.size[0]}x{self.size[1]}>"


class _Made(Dataset):
    _shape, _sizes, _seed = (1, 28, 28), (60000, 10000), 1
    classes = [str(digit) for digit in range(10)]

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        warnings.warn(
            f"{type(self).__name__} is a stand-in here: its pictures are made by this course, stripes of ten kinds", stacklevel=2
        )
        self.root, self.train, self.transform, self.target_transform = root, train, transform, target_transform
        size = self._sizes[0 if train else 1]
        self._size, self._pictures = size, _vision.pictures(size, *self._shape, self._seed if train else self._seed + 1)

    def __len__(self):
        return self._size

    def __getitem__(self, index):
        if not 0 <= index < self._size:
            raise IndexError("list index out of range")
        pixels, label = self._pictures.get(index)
        picture = Picture(pixels)
        if self.transform is not None:
            picture = self.transform(picture)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return picture, label

    def __repr__(self):
        return f"Dataset {type(self).__name__}\n    Number of datapoints: {self._size}\n    Root location: {self.root}"


class MNIST(_Made):
    pass


class FashionMNIST(_Made):
    _seed = 3
    classes = [
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    ]


class CIFAR10(_Made):
    _shape, _sizes, _seed = (3, 32, 32), (50000, 10000), 5
    classes = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]




def __getattr__(name):
    raise AttributeError(f"torchvision.datasets has no `{name}` here; `MNIST`, `FashionMNIST` and `CIFAR10` exist")
