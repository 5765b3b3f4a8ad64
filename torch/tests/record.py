"""Records what PyTorch prints: python record.py PYTHON [NAME…], where PYTHON is an interpreter with PyTorch and without a GPU.

Lines with times and other measurements are left out. `programs.rs` compares the rest with what this package prints.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = [*(HERE / "../../labs/python").glob("lab_*.py"), *(HERE / "programs").glob("*.py"), *(HERE / "snippets").glob("*.py")]
# A forked process hangs if its parent has computed on several threads.
FORKS = {"lab_10"}


def record(program):
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    if program.stem in FORKS:
        env["OMP_NUM_THREADS"] = "1"
    done = subprocess.run([sys.argv[1], str(program)], capture_output=True, text=True, cwd=program.parent, env=env)
    lines = [line for line in done.stdout.splitlines() if "(measured)" not in line]
    (HERE / "expected" / f"{program.stem}.txt").write_text("".join(line + "\n" for line in lines))
    if done.returncode:
        print(f"{program.stem}: {done.stderr.splitlines()[-1]}")


for program in sorted(PROGRAMS):
    is_module = program.stem == "model"
    if not is_module and (not sys.argv[2:] or program.stem in sys.argv[2:]):
        record(program)
