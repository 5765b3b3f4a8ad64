"""Runs a program, and then says on the last lines of standard error which of its lines were run, and which were not."""

import os
import runpy
import sys

path = sys.argv.pop()
run = set()
sys.path.insert(0, os.path.dirname(path))


def trace(frame, event, argument):
    if frame.f_code.co_filename != path:
        return None
    run.add(frame.f_lineno)
    return trace


def lines(code):
    yield from (line for _, _, line in code.co_lines() if line)
    for constant in code.co_consts:
        if hasattr(constant, "co_lines"):
            yield from lines(constant)


with open(path) as file:
    whole = set(lines(compile(file.read(), path, "exec")))
sys.settrace(trace)
try:
    runpy.run_path(path, run_name="__main__")
finally:
    sys.settrace(None)
print("run:", *sorted(whole & run), file=sys.stderr)
print("not run:", *sorted(whole - run), file=sys.stderr)
