"""Runs a function of the program in another process, whose interpreter has loaded the program again."""

import sys

import _processes


def run(parcel):
    """Returns the exit status."""
    import os

    import _parcel
    import torch

    name, slot, count, environ, random_state, target = parcel
    torch.multiprocessing._begin_child(name, slot, count)
    dict.update(os.environ, _parcel.unpack(environ))
    try:
        _load_program()
        if random_state is not None:  # A forked process goes on with the numbers of its parent.
            torch.set_rng_state(random_state)
        function, args, kwargs = _parcel.unpack(target)
        function(*args, **kwargs)
    except SystemExit as stop:
        return _status(stop.code)
    except BaseException as error:
        _processes.fail(_traceback(error))
        if not name.startswith("spawn"):
            sys.stderr.write(f"Process {name}:\n{_traceback(error)}")
        return 1
    finally:
        sys.stdout.flush()
    return 0


def _load_program():
    """As `multiprocessing` does: the program's `if __name__ == "__main__":` does not run again."""
    name, text = _processes.program()
    module = type(sys)("__mp_main__")
    module.__file__ = name
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    exec(compile(text, name, "exec"), module.__dict__)


def _traceback(error):
    import _errors
    import _host

    text = "".join(_errors._chain(error))
    report = getattr(error, "_report", None)
    return f"{text}\n{_host.in_python(report).rstrip()}\n" if report else text


def _status(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    sys.stderr.write(f"{code}\n")
    return 1
