"""`datetime.datetime.now`, `timedelta`, and little more."""

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


class timedelta:
    """A duration."""

    def __init__(self, days=0, seconds=0, microseconds=0, milliseconds=0, minutes=0, hours=0, weeks=0):
        whole = microseconds + 1000 * milliseconds + 10**6 * (seconds + 60 * minutes + 3600 * (hours + 24 * (days + 7 * weeks)))
        seconds, self.microseconds = divmod(round(whole), 10**6)
        self.days, self.seconds = divmod(seconds, 86400)

    def total_seconds(self):
        return self.days * 86400 + self.seconds + self.microseconds / 10**6

    def __eq__(self, other):
        return isinstance(other, timedelta) and self.total_seconds() == other.total_seconds()

    def __lt__(self, other):
        return self.total_seconds() < other.total_seconds()

    def __hash__(self):
        return hash(self.total_seconds())

    def __add__(self, other):
        return timedelta(seconds=self.total_seconds() + other.total_seconds())

    def __sub__(self, other):
        return timedelta(seconds=self.total_seconds() - other.total_seconds())

    def __mul__(self, factor):
        return timedelta(seconds=self.total_seconds() * factor)

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, timedelta):
            return self.total_seconds() / other.total_seconds()
        return timedelta(seconds=self.total_seconds() / other)

    def __str__(self):
        hours, rest = divmod(self.seconds, 3600)
        text = f"{hours}:{rest // 60:02}:{rest % 60:02}" + (f".{self.microseconds:06}" if self.microseconds else "")
        return f"{self.days} day{'' if abs(self.days) == 1 else 's'}, {text}" if self.days else text

    def __repr__(self):
        parts = [f"{name}={value}" for name in ("days", "seconds", "microseconds") if (value := getattr(self, name))]
        return f"datetime.timedelta({', '.join(parts) or '0'})"


def __getattr__(name):
    raise AttributeError(f"datetime has no `{name}` here; `datetime.now` and `timedelta` exist")
