"""Runs many damaged programs: python mutants.py TORCH_PYTHON COUNT [SEED]. Each must end, with a result, an exception, or one
line about a limit. Programs that break the interpreter are printed.

This file runs twice: outside, where it starts the interpreter, and inside, where it makes the programs and runs a batch.
"""

import random
import re
import subprocess
import sys
import time
from pathlib import Path

BATCH, SECONDS, GIB = 200, 10, 2
NUMBERS = "0 -1 1 2 3 7 64 -3 1000003 2**31 2**63 -2**63 2**70 1e308 1e-45 float('nan') float('inf') 0.5 True None '' 'cuda' 'cpu:1' [] () (2,3) [1] {} torch torch.float16 torch.int64 slice(None) ...".split()
WORDS = """sum mean view reshape t T expand cat stack zeros ones randn tensor empty arange eye backward grad detach to cuda cpu item tolist numel
size shape dtype device float half long bool squeeze unsqueeze permute transpose index_select gather scatter_ masked_fill where max min
argmax sort topk softmax matmul mm bmm add mul div pow sqrt clamp norm var std chunk split narrow flatten repeat repeat_interleave cumsum
any all nonzero unique numpy data requires_grad_ retain_grad register_hook is_leaf copy_ fill_ zero_ add_ mul_ nn Linear ReLU Sequential
Module Parameter optim SGD Adam step zero_grad state_dict load_state_dict no_grad inference_mode autocast Stream Event synchronize
memory_allocated empty_cache manual_seed set_device current_device device_count Dropout BatchNorm1d Embedding Conv2d MSELoss
CrossEntropyLoss functional relu cross_entropy DataLoader TensorDataset clone contiguous is_cuda pin_memory non_blocking""".split()
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


def mutant(texts, rng):
    """One that compiles is more likely."""
    for _ in range(4):
        text = damaged(texts, rng)
        try:
            compile(text, "<string>", "exec")
        except (SyntaxError, ValueError):
            continue
        break
    return text


def damaged(texts, rng):
    text = rng.choice(texts)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 5])):
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        kind = rng.randrange(12)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(rng.randrange(len(lines) + 1), lines[at])
        elif kind == 2:
            lines[at] = rng.choice(["", " ", "    "]) + lines[at].strip()
        elif kind == 3:
            other = rng.choice(texts).split("\n")
            lines[at:at] = other[(start := rng.randrange(len(other))) : start + rng.randrange(1, 6)]
        else:
            tokens = TOKEN.findall(lines[at])
            if tokens:
                spot = rng.randrange(len(tokens))
                tokens[spot] = changed(tokens, spot, rng)
                lines[at] = "".join(tokens)
        text = "\n".join(lines)
    return text


def changed(tokens, spot, rng):
    token = tokens[spot]
    kind = rng.randrange(5)
    if token[0].isdigit() or kind == 0:
        return rng.choice(NUMBERS)
    if kind == 1:
        return ""
    if kind == 2:
        return token + rng.choice(tokens)
    return rng.choice(WORDS) if token[0].isalpha() else rng.choice("+-*/@%.,:()[]=<>!&|~ ")


def inside(start, stop, seed, texts):
    def host(*args, **kwargs):
        raise OSError("a damaged program has no files")

    import _host

    for name in "write_file makedirs remove rmtree run_self chdir mkdtemp".split():
        setattr(_host, name, host)
    import os

    os.makedirs = os.remove = os.unlink = os.chdir = host
    import torch

    for index in range(start, stop):
        print(f"#{index}", file=sys.stderr)
        text = mutant(texts, random.Random(seed * 1000003 + index))
        try:
            exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})
            end = "result"
        except BaseException as error:
            end = type(error).__name__
        torch.set_grad_enabled(True)
        print(f"={end}", file=sys.stderr)


def outside(program, count, seed):
    here = Path(__file__).parent
    names = [path for path in sorted((here / "snippets").glob("*.py")) if path.stem not in ("model", "shell")]
    files = [*map(str, names), *map(str, sorted((here / "mutants").glob("*.py")))]
    ends, broken, index, began = {}, [], 0, time.time()
    while index < count:
        stop = min(index + BATCH, count)
        command = [program, "--gpu", "sim:t4", "--seconds", str(SECONDS), "--memory", str(GIB), __file__, "inside"]
        done = subprocess.run([*command, str(index), str(stop), str(seed), *files], capture_output=True, cwd=here / "snippets")
        lines = done.stderr.decode(errors="replace").splitlines()
        for line in lines:
            if line.startswith("="):
                ends[line[1:]] = ends.get(line[1:], 0) + 1
        reached = max([int(line[1:]) for line in lines if re.fullmatch(r"#\d+", line)], default=index)
        if done.returncode == 0:
            index = stop
            continue
        last = lines[-1] if lines else ""
        told = last[last.find("The program was ended") :]
        is_told = told.startswith("The program was ended")
        end = told if is_told else "broken"
        ends[end] = ends.get(end, 0) + 1
        if not is_told:
            broken.append(reached)
            print(f"mutant {reached} of seed {seed}, status {done.returncode}: {last}", flush=True)
        index = reached + 1
    print(f"{count} programs in {time.time() - began:.0f} s, {len(broken)} broken")
    for end, times in sorted(ends.items(), key=lambda pair: -pair[1]):
        print(f"{times:8} {end}")


if __name__ == "__main__":
    if sys.argv[1] == "inside":
        inside(*map(int, sys.argv[2:5]), [open(path).read() for path in sys.argv[5:]])
    elif sys.argv[1] == "show":  # python mutants.py show SEED INDEX
        here = Path(__file__).parent
        names = [path for path in sorted((here / "snippets").glob("*.py")) if path.stem not in ("model", "shell")]
        texts = [path.read_text() for path in [*names, *sorted((here / "mutants").glob("*.py"))]]
        print(mutant(texts, random.Random(int(sys.argv[2]) * 1000003 + int(sys.argv[3]))))
    else:
        outside(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else 1)
