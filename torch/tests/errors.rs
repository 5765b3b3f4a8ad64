//! Errors of a program: Python's traceback, PyTorch's text, and the course's report with Python's lines. And the limits
//! that end a program in one line.

use std::process::{Command, Output};

fn run(gpu: &str, flags: &[&str], program: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_torch-python"))
        .args(["--gpu", gpu])
        .args(flags)
        .args(["-c", program])
        .output()
        .expect("the interpreter starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The last line of the traceback, which names the exception.
fn exception(program: &str) -> String {
    let output = run("sim:t4", &[], program);
    assert_eq!(output.status.code(), Some(1), "{program}");
    let all = stderr(&output);
    let mut lines = all.lines().skip_while(|line| !line.contains("Error"));
    lines.next().unwrap_or_default().to_owned()
}

#[test]
fn the_report_has_the_lines_of_the_program() {
    let program = "import torch\nmodel = torch.nn.Linear(4, 2).to('cuda')\nx = torch.randn(3, 4)\ndef f(x):\n    return model(x)\nf(x)\n";
    let output = run("sim:t4", &[], program);
    let text = stderr(&output);
    assert!(text.starts_with("Traceback (most recent call last):\n"), "{text}");
    for part in [
        "File \"<string>\", line 5, in f",
        "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on cpu",
        "error[GPU0001]",
        "--> <string>:5",
        "made at <string>:2",
        "made at <string>:3",
        "keep what `.to(device)` returns",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains(".rs:"), "{text}");
}

#[test]
fn names_that_are_not_here_are_refused_by_name() {
    for (program, error) in [
        ("import torch; torch.fft_", "AttributeError: module 'torch' has no attribute 'fft_'"),
        (
            "import torch; torch.cdist",
            "AttributeError: torch has no `cdist` here: PyTorch has it, this course does not",
        ),
        (
            "import torch; torch.ones(2).histc()",
            "AttributeError: torch.Tensor has no `histc` here: PyTorch has it, this course does not",
        ),
        (
            "import torch; torch.nn.TransformerDecoder",
            "AttributeError: torch.nn has no `TransformerDecoder` here: PyTorch has it, this course does not",
        ),
        (
            "import torch; torch.zeros(2, foo=1)",
            "TypeError: zeros() got an unexpected keyword argument 'foo'",
        ),
        ("import numpy", "ModuleNotFoundError: No module named 'numpy' here."),
    ] {
        let line = exception(program);
        assert!(line.starts_with(error), "{program}: {line}");
    }
}

#[test]
fn errors_have_pytorchs_classes_and_texts() {
    for (program, error) in [
        (
            "import torch; torch.ones(2) + torch.ones(3)",
            "RuntimeError: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
        ),
        (
            "import torch; torch.ones(2, 3).sum(5)",
            "IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 5)",
        ),
        (
            "import torch; torch.ones(3)[5]",
            "IndexError: index 5 is out of bounds for dimension 0 with size 3",
        ),
        (
            "import torch; torch.tensor([[1, 2], [3]])",
            "ValueError: expected sequence of length 2 at dim 1 (got 1)",
        ),
        (
            "import torch; bool(torch.ones(2))",
            "RuntimeError: Boolean value of Tensor with more than one value is ambiguous",
        ),
        (
            "import torch; torch.ones(1).backward()",
            "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
        ),
        ("import torch; torch.empty(1 << 40, device='cuda')", "torch.OutOfMemoryError: CUDA out of memory."),
        (
            "import torch; torch.device('gpu')",
            "RuntimeError: Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, \
             vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: gpu",
        ),
        (
            "import torch; torch.ones(2, 3) @ torch.ones(2, 3)",
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
        ),
        (
            "import torch; torch.ones(2).cuda().numpy()",
            "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory \
             first.",
        ),
    ] {
        let line = exception(program);
        assert!(line.starts_with(error), "{program}: {line}");
    }
}

/// An argument that changes nothing here is refused where it changes something in PyTorch.
#[test]
fn no_argument_is_ignored() {
    for (program, error) in [
        ("torch.zeros(2, layout=5)", "TypeError: zeros(): argument 'layout' must be torch.layout, not int"),
        ("torch.Tensor(2, device='cuda')", "TypeError: Tensor() got an unexpected keyword argument 'device'"),
        ("torch.Tensor(-1)", "RuntimeError: Trying to create tensor with negative dimension -1"),
        ("torch.device(-1)", "RuntimeError: Device index must not be negative"),
        (
            "torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 1, 1), padding=(-1, 0))",
            "RuntimeError: conv2d(): negative sizes are not supported",
        ),
        ("torch.ones(2, 3).movedim(0, 5)", "IndexError: Dimension out of range"),
        ("torch.ones(2).repeat_interleave(2, 3)", "IndexError: Dimension out of range"),
        ("torch.dot(torch.ones(2, 2), torch.ones(2, 2))", "RuntimeError: dot: expected 1D and 1D tensors"),
        (
            "torch.cuda.Stream(priority=-1)",
            "TypeError: Stream() got an unexpected keyword argument 'priority'",
        ),
        ("torch.cuda.Event().record(5)", "TypeError"),
        ("torch.cuda.set_sync_debug_mode(7)", "RuntimeError: invalid value of debug_mode"),
        (
            "torch.optim.Adam([{'params': [torch.ones(2, requires_grad=True)], 'amsgrad': True}])",
            "AttributeError: amsgrad=True is not here",
        ),
        (
            "torch.profiler.profile(record_shapes=True)",
            "AttributeError: profile(record_shapes=True) is not here",
        ),
        (
            "import io; f = io.BytesIO(); torch.save(1, f); f.seek(0); torch.load(f, lambda storage, _: storage.cuda())",
            "AttributeError: torch.load with a function that moves storages is not here",
        ),
    ] {
        let line = exception(&format!("import torch; {program}"));
        assert!(line.starts_with(error), "{program}: {line}");
    }
}

#[test]
fn options_of_new_tensors_have_effects() {
    let program = "\
import torch
x = torch.ones(2, 3, 2, 2)
y = torch.zeros_like(x, memory_format=torch.channels_last, requires_grad=True)
z = torch.rand_like(y, memory_format=torch.contiguous_format, pin_memory=True)
e = torch.empty(2, 3, 2, 2, memory_format=torch.channels_last)
print(y.stride(), y.requires_grad, z.stride(), z.is_pinned(), e.stride())
print(torch.normal(0.0, 1.0, (2,), requires_grad=True).requires_grad, torch.ones(2).new_ones(1, pin_memory=True).is_pinned())
";
    let output = run("sim:t4", &[], program);
    let printed = "(12, 1, 6, 3) True (12, 4, 2, 1) True (12, 1, 6, 3)\nTrue True\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), printed, "{}", stderr(&output));
}

/// Each of these ends in bounded time and memory, with one line.
#[test]
fn a_crash_is_one_line() {
    let minus_signs = format!("x = {}1", "-".repeat(20_000));
    for (flags, program, line) in [
        (&["--seconds", "2"][..], "10 ** 10 ** 8", "The program was ended after 2 seconds."),
        (&["--seconds", "2"][..], "while True: pass", "The program was ended after 2 seconds."),
        (
            &["--memory", "2"][..],
            "x = [0] * 10 ** 9",
            "The program was ended: it needs more than 2 GiB of memory",
        ),
    ] {
        let output = run("none", flags, program);
        let text = stderr(&output);
        assert!(text.starts_with(line) && text.lines().count() == 1, "{program}: {text}");
        assert!(!output.status.success());
    }
    let output = run("none", &["--seconds", "60"], &minus_signs);
    let lines = stderr(&output).lines().count();
    assert!(lines <= 4, "{}", stderr(&output));
    let output = run("none", &[], "def f(): f()\nf()");
    assert!(
        stderr(&output).ends_with("RecursionError: maximum recursion depth exceeded \n")
            || stderr(&output).contains("RecursionError"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_program_may_end_itself() {
    assert_eq!(run("none", &[], "raise SystemExit").status.code(), Some(0));
    assert_eq!(run("none", &[], "import sys; sys.exit(3)").status.code(), Some(3));
}

#[test]
fn an_import_of_a_missing_name_says_that_pytorch_has_it() {
    let error = "ImportError: cannot import name 'LSTM_' from 'torch.nn': module 'torch.nn' has no attribute 'LSTM_'; \
                 `LSTM`, `LSTMCell` exist";
    assert_eq!(exception("from torch.nn import LSTM_"), error);
    let error = "cannot import name 'compile' from 'torch': torch has no `compile` here: PyTorch has it";
    assert!(exception("from torch import compile").contains(error));
}

#[test]
fn a_tensor_of_a_failed_gpu_is_not_printed() {
    let program =
        "import torch\nx = torch.ones(3, device='cuda')[torch.tensor([5], device='cuda')]\nprint(x)\n";
    assert!(
        exception(program).contains("CUDA error: device-side assert triggered"),
        "{}",
        exception(program)
    );
}

/// What is typed at the prompt, and what it prints.
fn at_the_prompt(typed: &str) -> (String, String) {
    use std::io::Write;
    let mut child = Command::new(env!("CARGO_BIN_EXE_torch-python"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the interpreter starts");
    child.stdin.take().expect("it is piped").write_all(typed.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    (String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output))
}

#[test]
fn the_prompt_runs_a_statement_when_it_is_complete() {
    let typed = [
        "import torch",
        "(1 +",
        "2)",
        "for i in range(2):",
        "    print(i)",
        "",
        "s = \"\"\"a",
        "b\"\"\"",
        "s",
        "x = [1,  # (",
        "2]",
        "x",
        "print(\"(\")",
        "@torch.no_grad()",
        "def f():",
        "    return torch.is_grad_enabled()",
        "",
        "f()",
        "exit",
        "_",
    ];
    let (printed, errors) = at_the_prompt(&typed.join("\n"));
    assert_eq!(errors, "");
    let expected = "3\n0\n1\n'a\\nb'\n[1, 2]\n(\nFalse\nUse exit() or Ctrl-D to leave the prompt.\n";
    assert!(printed.starts_with(expected), "{printed}");
}

/// So that a report tells them apart.
#[test]
fn the_prompt_numbers_its_lines_through() {
    let (_, errors) = at_the_prompt("import torch\nx = torch.ones(2)\n\nx + x.cuda()\n  x\nx = 1\n");
    for part in ["File \"<stdin>\", line 4", "made at <stdin>:2", "IndentationError: unexpected indent"] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_program_in_one_line() {
    let program = "import torch\nprint('begun', flush=True)\nwhile True:\n    torch.ones(3, device='cuda')\n";
    let child = Command::new(env!("CARGO_BIN_EXE_torch-python"))
        .args(["-c", program])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the interpreter starts");
    std::thread::sleep(std::time::Duration::from_secs(3));
    // A terminal sends it to both processes.
    let pids = Command::new("sh")
        .args(["-c", &format!("pgrep -P {0}; echo {0}", child.id())])
        .output()
        .expect("pgrep");
    for pid in String::from_utf8_lossy(&pids.stdout).split_whitespace() {
        Command::new("kill").args(["-INT", pid]).status().expect("kill");
    }
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).starts_with("KeyboardInterrupt at <string>:"), "{}", stderr(&output));
    assert_eq!(stderr(&output).lines().count(), 1);
}
