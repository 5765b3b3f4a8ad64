"""`socket` of this course: a program may look for a free port, which its ranks do not need. There is no network."""

AF_INET, SOCK_STREAM, SOL_SOCKET, SO_REUSEADDR = 2, 1, 1, 2
_port = 29499


class socket:
    def __init__(self, family=AF_INET, type=SOCK_STREAM, proto=0):
        self._name = ("0.0.0.0", 0)

    def bind(self, address):
        global _port
        _port += 1
        self._name = (address[0], address[1] or _port)

    def getsockname(self):
        return self._name

    def setsockopt(self, *args):
        pass

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __getattr__(self, name):
        raise AttributeError(f"a socket has no `{name}` here: a program of this course has no network")


def gethostname():
    return "localhost"


def __getattr__(name):
    raise AttributeError(f"socket has no `{name}` here: a program of this course has no network")
