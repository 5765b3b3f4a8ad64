"""Runs random programs with PyTorch on the CPU and here: python compare_random.py PYTHON TORCH-PYTHON FIRST COUNT.

PYTHON has PyTorch. Prints the programs whose output differs, and the number of those that are refused by name here.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from random_programs import Program

NUMBER = re.compile(r"-?\d+\.\d*(?:e[-+]\d+)?|-?\d+e[-+]\d+|\s+")


def output(command):
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout, done.stderr


def first_difference(expected, printed):
    for a, b in zip(expected.splitlines(), printed.splitlines()):
        if a != b:
            # The last digit of a printed number may differ: functions and sums of float32 are rounded elsewhere.
            x, y = NUMBER.findall(a), NUMBER.findall(b)
            same = NUMBER.sub("#", a) == NUMBER.sub("#", b) and len(x) == len(y)
            near = same and all(
                p == q or (p.strip() and q.strip() and abs(float(p) - float(q)) <= 2e-4 * max(abs(float(p)), abs(float(q)), 0.5))
                for p, q in zip(x, y)
            )
            return ("near" if near else "differs"), a, b
    return ("same", "", "") if len(expected) == len(printed) else ("differs", "(length)", "(length)")


# PyTorch takes seconds to start, so one process runs all programs.
RUN_ALL = """
import contextlib, io, json, sys
results = []
for path in sys.argv[1:]:
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(open(path).read(), path, "exec"), {"__name__": "__main__"})
        results.append([0, out.getvalue(), ""])
    except Exception as error:
        results.append([1, out.getvalue(), repr(error)])
print(json.dumps(results))
"""


def main():
    python, here, first, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    counts = {"same": 0, "near": 0, "refused": 0, "differs": 0, "broken": 0}
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{seed}.py" for seed in range(first, first + count)]
        for seed, path in enumerate(paths, first):
            path.write_text(Program(seed).text())
        results = json.loads(output([python, "-W", "ignore", "-c", RUN_ALL, *map(str, paths)])[1])
        for seed, path, (status, expected, error) in zip(range(first, first + count), paths, results):
            if status:
                counts["broken"] += 1
                print(seed, "PyTorch:", error)
                continue
            status, printed, error = output([here, "--gpu", "none", str(path)])
            last = (error.strip().splitlines() or [""])[-1]
            if status and ("PyTorch has" in last or "this course" in last):
                counts["refused"] += 1
                print(seed, "refused:", last)
                continue
            kind, a, b = first_difference(expected, printed)
            kind = "differs" if status else kind
            counts[kind] += 1
            if kind == "differs":
                print(seed, "differs:", a, "| here:", b, last if status else "")
    print(counts)
    return counts["differs"] > 0


sys.exit(main())
