"""`os.path`"""

import _host

sep = "/"


def join(first, *others):
    path = str(first)
    for other in map(str, others):
        if other.startswith("/"):
            path = other
        elif not path or path.endswith("/"):
            path += other
        else:
            path += "/" + other
    return path


def split(path):
    head, _, tail = str(path).rpartition("/")
    return (head or ("/" if str(path).startswith("/") else "")), tail


def basename(path):
    return split(path)[1]


def dirname(path):
    return split(path)[0]


def splitext(path):
    path = str(path)
    base = basename(path)
    stem, dot, extension = base.rpartition(".")
    return (path[: len(path) - len(extension) - 1], "." + extension) if dot and stem.strip(".") else (path, "")


def exists(path):
    return isdir(path) or isfile(path)


def isfile(path):
    return _host.file_size(str(path)) is not None and not isdir(path)


def isdir(path):
    return _host.is_dir(str(path))


def getsize(path):
    size = _host.file_size(str(path))
    if size is None:
        raise FileNotFoundError(f"[Errno 2] No such file or directory: '{path}'")
    return size


def isabs(path):
    return str(path).startswith("/")


def abspath(path):
    return normpath(join(_host.getcwd(), path))


realpath = abspath


def normpath(path):
    parts = []
    for part in str(path).split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return ("/" if str(path).startswith("/") else "") + "/".join(parts) or "."


def expanduser(path):
    return str(path)
