"""`subprocess` of this course knows two programs: nvidia-smi, and Python itself."""

import sys

import _host


class CompletedProcess:
    def __init__(self, args, returncode, stdout=None, stderr=None):
        self.args, self.returncode, self.stdout, self.stderr = args, returncode, stdout, stderr


class CalledProcessError(Exception):
    pass


PIPE, STDOUT, DEVNULL = -1, -2, -3


def run(args, *, capture_output=False, text=None, check=False, **options):
    program = args.split()[0] if isinstance(args, str) else args[0]
    if program == sys.executable:
        return CompletedProcess(args, _host.run_self([str(arg) for arg in args[1:]]))
    if program != "nvidia-smi":
        raise FileNotFoundError(f"[Errno 2] No such file or directory: '{program}': a program of this course starts nvidia-smi and itself only")
    table = _host.nvidia_smi()
    if table is None:
        raise FileNotFoundError("[Errno 2] No such file or directory: 'nvidia-smi'")
    if not capture_output and options.get("stdout") != PIPE:
        print(table)
        return CompletedProcess(args, 0)
    return CompletedProcess(args, 0, table if text else table.encode())


def check_output(args, **options):
    return run(args, capture_output=True, text=options.get("text")).stdout


def __getattr__(name):
    raise AttributeError(f"subprocess has no `{name}` here; `run` starts nvidia-smi")
