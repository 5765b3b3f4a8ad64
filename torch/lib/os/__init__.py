"""`os` of this course: names of files, and the environment of this program alone."""

import _host

from . import path

name, sep, linesep, pathsep, curdir, pardir, devnull = "posix", "/", "\n", ":", ".", "..", "/dev/null"
getcwd, chdir, listdir, remove, unlink = _host.getcwd, _host.chdir, _host.listdir, _host.remove, _host.remove
environ = _host.environment()
error = OSError


class _Environment(dict):
    """Some variables are settings of the machine."""

    def __setitem__(self, key, value):
        _host.set_variable(str(key), str(value))
        dict.__setitem__(self, key, value)

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args, **kwargs):
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def copy(self):
        return dict(self)


environ = _Environment(environ)


def getenv(key, default=None):
    return environ.get(key, default)


def putenv(key, value):
    environ[key] = value


def makedirs(name, mode=0o777, exist_ok=False):
    if not exist_ok and _host.is_dir(str(name)):
        raise FileExistsError(f"[Errno 17] File exists: '{name}'")
    _host.makedirs(str(name))


def mkdir(path, mode=0o777):
    makedirs(path)


def getpid():
    return 1


def _exit(n):
    raise SystemExit(n)


def cpu_count():
    return 1


def urandom(size):
    import _random

    return _random.Random().getrandbits(8 * size).to_bytes(size, "little")


def fspath(path):
    return path if isinstance(path, (str, bytes)) else path.__fspath__()


PathLike = object


def __getattr__(name):
    raise AttributeError(f"os has no `{name}` here: a program of this course has no other processes and few files")
