"""`warnings` of this course: a warning is one line, with the line of the program."""

import sys

_filters, _seen = [], set()


def warn(message, category=None, stacklevel=1, source=None, *, skip_file_prefixes=()):
    if isinstance(message, Warning):
        category, message = type(message), str(message)
    category = category or UserWarning
    file, line = _place()
    for action, kind, text in _filters:
        if issubclass(category, kind) and (not text or text in str(message)):
            if action == "ignore":
                return
            if action == "error":
                raise category(message)
            break
    key = (str(message), category, file, line)
    if key in _seen and not any(action == "always" for action, _, _ in _filters):
        return
    _seen.add(key)
    if _record is not None:
        _record.append(WarningMessage(message, category, file, line))
        return
    # A program may put another function in its place.
    sys.modules["warnings"].showwarning(category(message), category, file, line)


def showwarning(message, category, filename, lineno, file=None, line=None):
    (file or sys.stderr).write(f"{filename}:{lineno}: {category.__name__}: {message}\n")


def _place():
    from _errors import is_of_program

    depth = 1
    while True:
        try:
            frame = sys._getframe(depth)
        except ValueError:
            return "<unknown>", 0
        if is_of_program(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        depth += 1


class WarningMessage:
    def __init__(self, message, category, filename, lineno):
        self.message, self.category, self.filename, self.lineno = category(message), category, filename, lineno


def filterwarnings(action, message="", category=Warning, module="", lineno=0, append=False):
    _filters.insert(0, (action, category, message))


def simplefilter(action, category=Warning, lineno=0, append=False):
    filterwarnings(action, category=category)


def resetwarnings():
    _filters.clear()


_record = None


class catch_warnings:
    def __init__(self, *, record=False, module=None, action=None, category=Warning, lineno=0, append=False):
        self._records, self._action = record, action

    def __enter__(self):
        global _record
        self._before = list(_filters), _record, set(_seen)
        if self._action:
            simplefilter(self._action)
        if self._records:
            _record = []
        return _record if self._records else None

    def __exit__(self, *error):
        global _record
        _filters[:], _record, seen = self._before
        _seen.clear()
        _seen.update(seen)


def deprecated(message, *, category=DeprecationWarning, stacklevel=1):
    return lambda function: function
