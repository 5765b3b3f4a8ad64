"""Prints an exception that a program did not catch: Python's traceback, then the report of the course."""

import sys

import _host


def print_exception(error):
    sys.stderr.write("".join(_chain(error)))
    report = getattr(error, "_report", None)
    if report:
        report = _host.in_python(report).rstrip()
        sys.stderr.write(f"\n{report}\n")
        if report.startswith("error["):
            code = report[len("error[") : report.index("]")]
            sys.stderr.write(f"   = more: cargo course explain {code}\n")


def _chain(error):
    if error.__cause__ is not None:
        yield from _chain(error.__cause__)
        yield "\nThe above exception was the direct cause of the following exception:\n\n"
    elif error.__context__ is not None and not error.__suppress_context__:
        yield from _chain(error.__context__)
        yield "\nDuring handling of the above exception, another exception occurred:\n\n"
    yield from _one(error)


def _one(error):
    frames = list(_frames(error.__traceback__))
    if frames:
        yield "Traceback (most recent call last):\n"
    last, repeated = None, 0
    for frame in frames:
        repeated = repeated + 1 if frame == last else 0
        last = frame
        if repeated < 3:
            yield frame
    if isinstance(error, SyntaxError):
        yield from _syntax(error)
        return
    text = str(error)
    if isinstance(error, ImportError):
        text = _of_import(text)
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    yield f"{name}: {text}\n" if text else f"{name}\n"
    for note in getattr(error, "__notes__", ()):
        yield f"{note}\n"


def _of_import(text):
    """`from torch import x` also says whether PyTorch has it."""
    parts = text.split("'")
    if not text.startswith("cannot import name ") or len(parts) < 4:
        return text
    try:
        getattr(sys.modules[parts[3]], parts[1])
    except AttributeError as reason:
        return f"cannot import name '{parts[1]}' from '{parts[3]}': {reason}"
    except KeyError:
        pass
    return text


def _frames(traceback):
    """The lines of the program. Those of this course's own modules are left out."""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        file, line = code.co_filename, traceback.tb_lineno
        if is_of_program(file):
            source = _line(file, line)
            yield f'  File "{file}", line {line}, in {code.co_name}\n' + (f"    {source}\n" if source else "")
        traceback = traceback.tb_next


def is_of_program(file):
    return file.endswith(".py") or file in ("<string>", "<stdin>")


def _line(file, number):
    if not file.endswith(".py"):
        return ""
    try:
        lines = _host.read_file(file).decode().split("\n")
    except OSError:
        return ""
    return lines[number - 1].strip() if number <= len(lines) else ""


def _syntax(error):
    if error.filename:
        yield f'  File "{error.filename}", line {error.lineno}\n'
    if error.text:
        text = error.text.rstrip("\n")
        stripped = text.lstrip()
        yield f"    {stripped}\n"
        if error.offset:
            yield "    " + " " * max(error.offset - 1 - (len(text) - len(stripped)), 0) + "^\n"
    text = {"unexpected indentation": "unexpected indent"}.get(error.msg, error.msg)
    yield f"{type(error).__name__}: {text}\n"
