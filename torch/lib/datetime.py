"""`datetime.datetime.now`, and little more."""

import time as _time


class datetime:
    def __init__(self, t):
        self._t = t
        self.year, self.month, self.day, self.hour, self.minute, self.second = t[:6]

    @classmethod
    def now(cls, tz=None):
        return cls(_time.gmtime())

    utcnow = now

    def strftime(self, format):
        return _time.strftime(format, self._t)

    def isoformat(self):
        return self.strftime("%Y-%m-%dT%H:%M:%S")

    def __str__(self):
        return self.strftime("%Y-%m-%d %H:%M:%S")


def __getattr__(name):
    raise AttributeError(f"datetime has no `{name}` here; `datetime.now` exists")
