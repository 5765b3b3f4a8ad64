//! Checks that the programs of `labs/python` print the same as the labs. They need a Python with PyTorch, so they are
//! ignored unless requested:
//!
//! ```sh
//! TORCH_PYTHON=venv/bin/python cargo test --workspace --test suite -- --ignored programs_say_on_the_cpu
//! ```
//!
//! A program's output is compared as follows:
//! - `name = value`, anywhere in a line, is the lab's figure of that name, as the lab prints it. (`f"{name = }"` prints
//!   this form.) If a figure has several values, they have the same order; the last digit of a float may differ by one.
//! - Any other line with a number must be a line of the lab's output,
//! - unless it ends with `(measured)`.

mod compare;
mod programs;

use std::env;
use std::path::Path;
use std::process::Command;

use compare::Lab;
use programs::{Program, programs};

/// A Python with PyTorch.
fn python() -> Command {
    let python = env::var_os("TORCH_PYTHON").unwrap_or_else(|| {
        panic!("TORCH_PYTHON is not set: it names a Python that has PyTorch, such as venv/bin/python")
    });
    let mut has_torch = Command::new(&python);
    match has_torch.args(["-c", "import torch"]).output() {
        Ok(output) if output.status.success() => {}
        Ok(_) => panic!("{} has no PyTorch: {0} -m pip install torch", Path::new(&python).display()),
        Err(error) => panic!("TORCH_PYTHON names {}: {error}", Path::new(&python).display()),
    }
    let mut command = Command::new(python);
    // With one thread, no operation waits until another program yields a core.
    command.env("OMP_NUM_THREADS", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    command.args(["-c", include_str!("run.py")]);
    command
}

/// The errors in the programs' output and, without a GPU, the anchors of which hardly any code ran.
fn wrong(programs: Vec<Program>, run: &str, gpu: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for program in programs {
        let mut command = python();
        if !gpu {
            command.env("CUDA_VISIBLE_DEVICES", "");
        }
        let output = command.arg(&program.path).output().unwrap();
        let (said, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            wrong.push(program.says(&format!("it fails\n{errors}")));
            continue;
        }
        let mut lab = Lab::new(program.lab, run, gpu);
        wrong.extend(said.lines().filter_map(|line| lab.wrong(line)).map(|what| program.says(&what)));
        if !gpu {
            wrong.extend(unmarked(&program, &errors));
        }
    }
    wrong
}

/// The anchors with a wrong GPU mark: an anchor needs a GPU if less than a third of its lines run without one.
fn unmarked(program: &Program, errors: &str) -> Vec<String> {
    let lines = |start: &str| -> Vec<usize> {
        let line = errors.lines().rev().find_map(|line| line.strip_prefix(start)).unwrap_or_default();
        line.split_whitespace().filter_map(|line| line.parse().ok()).collect()
    };
    let (run, not_run) = (lines("run:"), lines("not run:"));
    let wrong = program.anchors.iter().filter_map(|anchor| {
        let of_anchor = |lines: &[usize]| lines.iter().filter(|line| anchor.code.contains(line)).count();
        let (run, not_run) = (of_anchor(&run), of_anchor(&not_run));
        match (3 * run < run + not_run, anchor.needs_a_gpu) {
            (true, false) => {
                Some(format!("anchor `{0}` is not run on a CPU: write `{0} (needs a GPU)`", anchor.name))
            }
            (false, true) => {
                Some(format!("anchor `{}` is run on a CPU: leave `(needs a GPU)` out", anchor.name))
            }
            _ => None,
        }
    });
    wrong.map(|what| program.says(&what)).collect()
}

#[test]
#[ignore = "it takes a Python that has PyTorch: see the head of this file"]
fn programs_say_on_the_cpu_what_the_labs_say() {
    let wrong = wrong(programs(), "none", false);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// On a GPU, or on a stand-in that computes nothing, PyTorch's allocator hands out the same bytes as the simulated one.
/// Only bytes are compared: the rest of these programs' output depends on the card.
#[test]
#[ignore = "it takes a Python whose PyTorch sees a GPU, TORCH_PYTHON=…"]
fn programs_on_a_gpu_take_the_bytes_that_lab_04_says() {
    let of_memory = programs().into_iter().filter(|program| program.lab.name == "lab-04").collect();
    let wrong = wrong(of_memory, "t4", true);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
