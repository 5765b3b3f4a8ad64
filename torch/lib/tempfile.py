"""`tempfile`: folders that are removed."""

import _host


def mkdtemp(suffix=None, prefix=None, dir=None):
    return _host.mkdtemp(prefix or "tmp")


def gettempdir():
    return "/tmp"


class TemporaryDirectory:
    def __init__(self, suffix=None, prefix=None, dir=None, ignore_cleanup_errors=False, *, delete=True):
        self.name = mkdtemp(suffix, prefix)

    def __enter__(self):
        return self.name

    def __exit__(self, *error):
        self.cleanup()

    def cleanup(self):
        _host.rmtree(self.name)


def __getattr__(name):
    raise AttributeError(f"tempfile has no `{name}` here; `TemporaryDirectory` exists")
