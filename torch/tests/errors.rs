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
            "import torch; torch.einsum",
            "AttributeError: torch has no `einsum` here: PyTorch has it, this course does not",
        ),
        (
            "import torch; torch.ones(2).histc()",
            "AttributeError: torch.Tensor has no `histc` here: PyTorch has it, this course does not",
        ),
        (
            "import torch; torch.nn.LSTM",
            "AttributeError: torch.nn has no `LSTM` here: PyTorch has it, this course does not",
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
        (
            "torch.nn.functional.mse_loss(torch.ones(2), torch.ones(2), size_average=False)",
            "NotImplementedError: the argument 'size_average' is not here",
        ),
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
