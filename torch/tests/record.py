"""Records what PyTorch prints: python record.py PYTHON, where PYTHON is an interpreter with PyTorch and without a GPU.

Lines with times and other measurements are left out. `programs.rs` compares the rest with what this package prints.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = [*(HERE / "../../labs/python").glob("lab_*.py"), *(HERE / "programs").glob("*.py")]
# Its ranks are processes.
LEFT_OUT = {"lab_10"}


def record(program):
    done = subprocess.run(
        [sys.argv[1], str(program)], capture_output=True, text=True, cwd=program.parent, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    )
    lines = [line for line in done.stdout.splitlines() if "(measured)" not in line]
    (HERE / "expected" / f"{program.stem}.txt").write_text("".join(line + "\n" for line in lines))
    if done.returncode:
        print(f"{program.stem}: {done.stderr.splitlines()[-1]}")


for program in sorted(PROGRAMS):
    if program.stem not in LEFT_OUT:
        record(program)
