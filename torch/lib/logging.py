"""`logging`: lines on standard error."""

import sys

DEBUG, INFO, WARNING, ERROR, CRITICAL = 10, 20, 30, 40, 50
_NAMES = {10: "DEBUG", 20: "INFO", 30: "WARNING", 40: "ERROR", 50: "CRITICAL"}
_settings = {"level": WARNING, "format": "%(levelname)s:%(name)s:%(message)s"}


def basicConfig(*, level=None, format=None, **options):
    if level is not None:
        _settings["level"] = getattr(sys.modules[__name__], level) if isinstance(level, str) else level
    if format is not None:
        _settings["format"] = format


class Logger:
    def __init__(self, name):
        self.name, self.level = name, None

    def setLevel(self, level):
        self.level = getattr(sys.modules[__name__], level) if isinstance(level, str) else level

    def isEnabledFor(self, level):
        return level >= (self.level or _settings["level"])

    def log(self, level, message, *args, **options):
        if self.isEnabledFor(level):
            import time

            text = str(message) % args if args else str(message)
            values = {"levelname": _NAMES.get(level, level), "name": self.name, "message": text, "asctime": time.strftime("%Y-%m-%d %H:%M:%S")}
            sys.stderr.write(_settings["format"] % values + "\n")

    def debug(self, message, *args, **options):
        self.log(DEBUG, message, *args)

    def info(self, message, *args, **options):
        self.log(INFO, message, *args)

    def warning(self, message, *args, **options):
        self.log(WARNING, message, *args)

    def error(self, message, *args, **options):
        self.log(ERROR, message, *args)

    exception = critical = error


_root, _loggers = Logger("root"), {}
debug, info, warning, error, critical = _root.debug, _root.info, _root.warning, _root.error, _root.critical


def getLogger(name=None):
    return _root if name is None else _loggers.setdefault(name, Logger(name))


def __getattr__(name):
    raise AttributeError(f"logging has no `{name}` here; `getLogger` and `basicConfig` exist")
