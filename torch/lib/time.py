"""`time` on the machine's clock, which is modelled if the GPUs are simulated. Dates are those of the computer."""

from collections import namedtuple

import _host

perf_counter = monotonic = _host.now
process_time, sleep, time = _host.process_time, _host.sleep, _host.real_time


def perf_counter_ns():
    return int(_host.now() * 1e9)


monotonic_ns = perf_counter_ns


def time_ns():
    return int(_host.real_time() * 1e9)


struct_time = namedtuple("struct_time", "tm_year tm_mon tm_mday tm_hour tm_min tm_sec tm_wday tm_yday tm_isdst")


def gmtime(seconds=None):
    seconds = int(_host.real_time() if seconds is None else seconds)
    days, rest = divmod(seconds, 86400)
    z = days + 719468
    era, doe = divmod(z, 146097)
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    month = (5 * doy + 2) // 153
    day = doy - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    year = yoe + era * 400 + (month <= 2)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    yday = day + sum((31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[: month - 1])
    return struct_time(year, month, day, rest // 3600, rest // 60 % 60, rest % 60, (days + 3) % 7, yday, 0)


localtime = gmtime

_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MONTHS = "January February March April May June July August September October November December".split()


def strftime(format, t=None):
    t = gmtime() if t is None else t
    values = {
        "Y": f"{t.tm_year}", "m": f"{t.tm_mon:02}", "d": f"{t.tm_mday:02}", "H": f"{t.tm_hour:02}", "M": f"{t.tm_min:02}",
        "S": f"{t.tm_sec:02}", "y": f"{t.tm_year % 100:02}", "j": f"{t.tm_yday:03}", "%": "%", "A": _DAYS[t.tm_wday],
        "a": _DAYS[t.tm_wday][:3], "B": _MONTHS[t.tm_mon - 1], "b": _MONTHS[t.tm_mon - 1][:3], "p": "AM" if t.tm_hour < 12 else "PM",
        "I": f"{(t.tm_hour - 1) % 12 + 1:02}",
    }
    text, letters = "", iter(format)
    for letter in letters:
        text += values.get(kind, "%" + kind) if letter == "%" and (kind := next(letters, "")) else letter
    return text


def asctime(t=None):
    return strftime("%a %b %d %H:%M:%S %Y", t)


ctime = asctime
