"""`pathlib.Path`"""

import io
import os


class Path:
    def __init__(self, *parts):
        self._path = os.path.normpath(os.path.join(*parts)) if parts else "."

    def __truediv__(self, other):
        return Path(self._path, str(other))

    def __str__(self):
        return self._path

    __fspath__ = __str__

    def __repr__(self):
        return f"PosixPath('{self._path}')"

    def __eq__(self, other):
        return isinstance(other, Path) and self._path == other._path

    def __hash__(self):
        return hash(self._path)

    name = property(lambda self: os.path.basename(self._path))
    parent = property(lambda self: Path(os.path.dirname(self._path) or "."))
    suffix = property(lambda self: os.path.splitext(self._path)[1])
    stem = property(lambda self: os.path.splitext(self.name)[0])

    @classmethod
    def cwd(cls):
        return cls(os.getcwd())

    def exists(self):
        return os.path.exists(self._path)

    def is_file(self):
        return os.path.isfile(self._path)

    def is_dir(self):
        return os.path.isdir(self._path)

    def mkdir(self, mode=0o777, parents=False, exist_ok=False):
        os.makedirs(self._path, exist_ok=exist_ok)

    def unlink(self, missing_ok=False):
        if self.exists() or not missing_ok:
            os.remove(self._path)

    def resolve(self):
        return Path(os.path.abspath(self._path))

    absolute = resolve

    def iterdir(self):
        return (self / name for name in os.listdir(self._path))

    def with_suffix(self, suffix):
        return Path(os.path.splitext(self._path)[0] + suffix)

    def open(self, mode="r", *args, **kwargs):
        return io.open(self._path, mode)

    def read_text(self, encoding=None):
        with self.open() as file:
            return file.read()

    def write_text(self, text, encoding=None):
        with self.open("w") as file:
            return file.write(text)

    def read_bytes(self):
        with self.open("rb") as file:
            return file.read()

    def write_bytes(self, data):
        with self.open("wb") as file:
            return file.write(data)


PurePath = PosixPath = Path
