"""A notebook's `!nvidia-smi`."""

# ---- Prelude: `!` runs a program.
import subprocess


def shell(command):
    try:
        print(subprocess.run(command.split(), capture_output=True, text=True).stdout)
    except FileNotFoundError as error:
        print(type(error).__name__)
# ---- End of the prelude.

shell("nvidia-smi")
