"""Records the memory of a GPU after each line of a program, in PyTorch: python memory.py ORACLE [NAME…]

ORACLE runs PyTorch's CUDA half without a GPU. Two things that ours does not have are switched off: a thread for backward passes on a
GPU, whose cuBLAS has a workspace of its own, and the workspace of cuBLASLt. `memory.rs` puts the same calls into the programs.
"""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
# Left out: lab_02 goes through a set of devices, whose order is open; lab_05 and lab_09 ask NVIDIA's library; lab_06, lab_07 and
# lab_08 depend on values or times; lab_10 has several GPUs.
LABS = """lab_01 lab_01_program lab_01_save_and_load lab_02_program lab_02_optimizer_to lab_03 lab_03_program lab_03_classes lab_04
lab_04_notebook lab_06_program lab_09_collate lab_11 lab_13""".split()
SNIPPETS = [path.stem for path in sorted((HERE / "snippets").glob("*.py")) if path.stem not in ("model", "shell", "cudnn_flags")]
BEGIN = "import os; os.environ['CUBLASLT_WORKSPACE_SIZE'] = '0'; import torch; torch.autograd.set_multithreading_enabled(False)\n"


def places(tree):
    """After which lines to ask, and how far each call is indented."""
    found = {}
    for node in ast.walk(tree):
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(node, block, None)
            for statement in statements if isinstance(statements, list) else []:
                leaves = isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue, ast.Import, ast.ImportFrom))
                in_class = isinstance(node, ast.ClassDef) or isinstance(statement, (ast.FunctionDef, ast.ClassDef))
                if not leaves and not in_class and isinstance(statement, ast.stmt):
                    # Of two statements that end in a line, the outer one.
                    column = found.get(statement.end_lineno, statement.col_offset)
                    found[statement.end_lineno] = min(column, statement.col_offset)
    return sorted(found.items())




def with_calls(text, found):
    lines, asked = text.split("\n"), dict(found)
    result = []
    for number, line in enumerate(lines, 1):
        result.append(line)
        if number in asked:
            result.append(f"{' ' * asked[number]}__import__('lines').line({number})")
    return "\n".join(result) + "\n__import__('lines').report()\n"


def record(path):
    text = path.read_text()
    found = places(ast.parse(text))
    with tempfile.TemporaryDirectory() as folder:
        for other in [*path.parent.glob("*.py"), HERE / "memory" / "lines.py"]:
            shutil.copy(other, folder)
        (Path(folder) / path.name).write_text(BEGIN + with_calls(text, found))
        env = {**os.environ, "FAKE_MEM": "15655829504", "FAKE_OTHERS": "268435456"}
        done = subprocess.run([sys.argv[1], path.name], capture_output=True, text=True, cwd=folder, env=env)
    states = done.stdout.split("\n== memory\n")[1:]
    if not states:
        print(f"{path.stem}: {(done.stderr.strip().splitlines() or ['no report'])[-1]}")
        return
    asked = " ".join(f"{line}:{column}" for line, column in found)
    (HERE / "memory" / f"{path.stem}.txt").write_text(f"{asked}\n{states[0]}")


for name in [*LABS, *SNIPPETS]:
    if not sys.argv[2:] or name in sys.argv[2:]:
        record(HERE / ("../../labs/python" if name.startswith("lab_") else "snippets") / f"{name}.py")
