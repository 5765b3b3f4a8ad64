//! Tests of `lab-12 train`: a kernel of the reader's own under autograd.

#[cfg(target_os = "linux")]
#[path = "../../../tests/fake_cuda/stand_ins.rs"]
mod stand_ins;

use std::process::Command;

/// What a program printed, its errors, and its exit code.
struct Response {
    output: String,
    errors: String,
    code: Option<i32>,
}

fn said(command: &mut Command) -> Response {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Response { output: text(output.stdout), errors: text(output.stderr), code: output.status.code() }
}

fn train(arguments: &[&str]) -> Response {
    said(Command::new(env!("CARGO_BIN_EXE_lab-12")).arg("train").args(arguments))
}

fn example(name: &str) -> String {
    format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The file of an activation function with these bodies of its two kernels.
fn activation(name: &str, forward: &str, backward: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let index = "int i = blockIdx.x * blockDim.x + threadIdx.x;";
    let text = format!(
        "__global__ void forward(const float *x, float *y, int n) {{\n{index}\n{forward}\n}}\n\
         __global__ void backward(const float *x, const float *grad_y, float *grad_x, int n) {{\n{index}\n{backward}\n}}\n"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const FORWARD: &str = "if (i < n) y[i] = fmaxf(x[i], 0.0f) * fmaxf(x[i], 0.0f);";
const BACKWARD: &str = "if (i < n) grad_x[i] = grad_y[i] * 2.0f * fmaxf(x[i], 0.0f);";

#[test]
fn the_example_trains_to_the_bits_of_tensor_operations() {
    let Response { output, errors, code } = train(&[]);
    assert_eq!((code, &*errors), (Some(0), ""), "{output}");
    for part in [
        "machine: Tesla T4 (simulated)\nkernels: forward and backward of activation.cu\n\ngradcheck: backward agrees",
        "\nepoch  your kernels  x.relu()?.square()?\n    1  ",
        "\nthe losses have the same bits\nseconds: 0.00",
        " without (modelled)\ntotal time: ",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
    let file = train(&["--show"]).output;
    assert!(file.starts_with("// An activation function of your own") && file.contains("void backward("));
    // The times are those of the card; the losses are not.
    let h200 = train(&[&example("activation.cu"), "--gpu=sim:h200", "--epochs", "1"]).output;
    let loss = |text: &str| text.lines().find(|line| line.starts_with("    1  ")).unwrap().to_owned();
    assert_eq!(loss(&h200), loss(&output));
    assert!(h200.contains("NVIDIA H200 (simulated)"));
}

#[test]
fn a_wrong_backward_fails_gradcheck_with_the_first_element_that_differs() {
    let Response { output, code, .. } = train(&[&example("wrong_backward.cu")]);
    assert_eq!(code, Some(1));
    let note = "note: the first difference is the slope of element 3 of the output along element 3 of the input: 0.999999 \
                by finite differences, 0.5 by backward\n";
    assert!(
        output.contains("gradcheck: Jacobian mismatch for output 0 with respect to input 0,\n"),
        "{output}"
    );
    assert!(output.ends_with(note), "{output}");

    for (name, backward) in [
        ("sign.cu", "if (i < n) grad_x[i] = grad_y[i] * -2.0f * fmaxf(x[i], 0.0f);"),
        ("no_guard_at_0.cu", "if (i < n) grad_x[i] = grad_y[i] * 2.0f * x[i];"),
        ("no_grad.cu", "if (i < n) grad_x[i] = 2.0f * fmaxf(x[i], 0.0f);"),
        ("neighbour.cu", "if (i < n) grad_x[i] = grad_y[(i + 1) % n] * 2.0f * fmaxf(x[i], 0.0f);"),
        ("nothing.cu", "if (i < n) grad_x[i] = 0.0f;"),
        ("nan.cu", "if (i < n) grad_x[i] = grad_y[i] * 2.0f * fmaxf(x[i], 0.0f) * (x[i] / 0.0f);"),
    ] {
        let Response { output, code, .. } = train(&[&activation(name, FORWARD, backward)]);
        assert!(code == Some(1) && output.contains("\nnote: the first difference"), "{name}: {output}");
    }
}

#[test]
fn other_functions_are_recognised_and_new_ones_train_alone() {
    // The same rounding as this crate's is not to be had with other operations.
    let (tanh, slope) = (
        "float t = i < n ? tanhf(0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i])) : 0.0f;",
        "if (i < n) grad_x[i] = grad_y[i] * (0.5f * (1.0f + t) + 0.5f * x[i] * (1.0f - t * t) * 0.7978845608f * (1.0f + \
         3.0f * 0.044715f * x[i] * x[i]));",
    );
    let file = activation(
        "gelu.cu",
        &format!("{tanh} if (i < n) y[i] = 0.5f * x[i] * (1.0f + t);"),
        &format!("{tanh} {slope}"),
    );
    let Response { output, code, .. } = train(&[&file]);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("your kernels  x.gelu(Approximate::Tanh)?\n"), "{output}");
    assert!(output.contains("which is rounding\n") || output.contains("the same bits\n"), "{output}");

    let file = activation(
        "sine.cu",
        "if (i < n) y[i] = sinf(x[i]);",
        "if (i < n) grad_x[i] = grad_y[i] * cosf(x[i]);",
    );
    let Response { output, code, .. } = train(&[&file]);
    assert_eq!(code, Some(0), "{output}");
    assert!(
        output.contains("forward is not one of these functions, so there is no comparison: x.relu()"),
        "{output}"
    );
}

/// At the few numbers of the check, one block is enough.
#[test]
fn kernels_that_are_right_for_one_block_only_differ_in_training() {
    let backward = BACKWARD.replace("i < n", "i < n && blockIdx.x == 0");
    let Response { output, code, .. } = train(&[&activation("one_block.cu", FORWARD, &backward)]);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("the kernels compute something else"), "{output}");
}

#[test]
fn errors_of_the_kernels_name_their_line() {
    let line = |file: &str| {
        let Response { errors, code, .. } = train(&[file]);
        assert_eq!(code, Some(2), "{errors}");
        errors
    };
    let file = activation("far.cu", &FORWARD.replace("i < n", "i <= n"), BACKWARD);
    let errors = line(&file);
    let far = format!(
        "error: CUDA error: an illegal memory access was encountered (Invalid __global__ read of size 4 bytes at \
         {file}:3:20 by thread (6,0,0) in block (0,0,0))\n"
    );
    assert!(errors.starts_with(&far), "{errors}");
    let file = activation("asserts.cu", &format!("assert(n > 100);\n{FORWARD}"), BACKWARD);
    assert!(line(&file).contains("device-side assert triggered (Assertion `n > 100` failed at "));

    let file = activation("typo.cu", &FORWARD.replace("fmaxf", "fmaxx"), BACKWARD);
    let errors = line(&file);
    assert!(errors.starts_with("error: compile_kernel: Kernel compilation failed: "), "{errors}");
    assert!(errors.contains(&format!("{file}:3:")), "{errors}");

    let file = activation("names.cu", FORWARD, BACKWARD);
    let text = std::fs::read_to_string(&file).unwrap();
    for (from, to, wanted) in [
        (
            "void backward",
            "void back",
            "the source has no __global__ function `backward`; it has `forward`, `back`",
        ),
        ("float *y, int n", "float *y, int n, int m", "forward() takes 4 arguments but 3 were given"),
        (
            "const float *x, float *y",
            "const double *x, float *y",
            "expected scalar type Double but found Float",
        ),
    ] {
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let errors = line(&file);
        assert!(errors.contains(wanted) && errors.lines().count() == 1, "{errors}");
    }
}

#[test]
fn flags_that_are_wrong_are_one_line() {
    for (arguments, wanted) in [
        (&["--gpu", "none"][..], "error: a kernel needs a GPU: --gpu sim:t4 simulates one\n"),
        (&["--gpu", "sim:t9"], "error: --gpu: "),
        (&["--gpu"], "error: `--gpu` needs a value\n"),
        (&["--epochs", "0"], "error: `--epochs 0`: 1 to 1000 epochs\n"),
        (&["--seed", "x"], "error: `--seed x`: a seed is a whole number\n"),
        (&["--check", "all"], "error: `train` has no flag `--check`\n"),
        (&["a.cu", "b.cu"], "error: `b.cu`: one file at a time\n"),
        (&["a.cu"], "error: the file a.cu cannot be read: "),
    ] {
        let Response { output, errors, code } = train(arguments);
        assert_eq!((code, &*output), (Some(2), ""), "{arguments:?}");
        assert!(errors.starts_with(wanted), "{arguments:?}: {errors}");
    }
    assert!(train(&["--help"]).output.starts_with("Compiles two kernels, `forward` and `backward`"));
}

/// On NVIDIA's driver. Its libraries are stand-ins, which compile the kernels for the host.
#[test]
#[cfg(target_os = "linux")]
fn a_real_gpu_trains_with_the_same_file() {
    let stand_ins = stand_ins::stand_ins(todevice::cuda::kernel_signatures);
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab-12"));
    let Response { output, errors, code } =
        said(stand_ins.on(&mut command).args(["train", "--gpu", "real", "--epochs", "1"]));
    assert_eq!(code, Some(0), "{output}{errors}");
    assert!(output.starts_with("machine: Stand-in for a GPU\n"), "{output}");
    assert!(
        output.contains("\nthe losses have the same bits\n") && output.contains(" without (measured)\n"),
        "{output}"
    );
}

/// The program in PyTorch prints the same losses:
/// `TORCH_PYTHON=venv/bin/python cargo test -p lab-12 --test train -- --ignored`
#[test]
#[ignore = "it takes a Python that has PyTorch: TORCH_PYTHON=venv/bin/python"]
fn pytorch_trains_to_the_same_losses() {
    let python = std::env::var_os("TORCH_PYTHON").expect("TORCH_PYTHON names a Python that has PyTorch");
    let program = format!("{}/python/activation.py", env!("CARGO_MANIFEST_DIR"));
    let Response { output, errors, code } =
        said(Command::new(python).arg(program).env("PYTHONDONTWRITEBYTECODE", "1"));
    assert_eq!(code, Some(0), "{errors}");
    assert!(output.starts_with("True\n"), "{output}");
    let losses = |text: &str| -> Vec<Vec<f64>> {
        let rows = text.lines().filter(|line| line.starts_with("    "));
        rows.map(|row| row.split_whitespace().skip(1).flat_map(str::parse).collect()).collect()
    };
    let (theirs, ours) = (losses(&output), losses(&train(&[]).output));
    assert_eq!((theirs.len(), ours.len()), (3, 3), "{output}");
    for (a, b) in theirs.iter().flatten().zip(ours.iter().flatten()) {
        assert!((a - b).abs() < 1e-5, "{theirs:?} {ours:?}");
    }
}

#[test]
fn a_launch_from_rust_has_the_bits_of_a_sum_of_tensors() {
    let launch =
        |arguments: &[&str]| said(Command::new(env!("CARGO_BIN_EXE_lab-12")).arg("launch").args(arguments));
    let t4 = launch(&[]);
    assert_eq!((t4.code, &*t4.errors), (Some(0), ""));
    assert_eq!(
        t4.output,
        "machine: Tesla T4 (simulated)\nadd<<<4, 256>>> for 1000 elements: the last sum is 10989\n\
         All sums have the bits of `&a + &b`.\n"
    );
    assert!(launch(&["--gpu=sim:h200"]).output.starts_with("machine: NVIDIA H200 (simulated)\n"));
    assert!(launch(&["--help"]).output.starts_with("Compiles a kernel that adds two vectors"));
    for (arguments, error) in [
        (&["--gpu", "sim:t5"][..], "--gpu: "),
        (&["--gpu"], "`--gpu` needs a value"),
        (&["my.cu"], "`launch` takes `--gpu GPU` and nothing else, not `my.cu`"),
        (&["--gpu", "none"], "a kernel needs a GPU"),
    ] {
        let refused = launch(arguments);
        assert_eq!((refused.code, &*refused.output), (Some(2), ""), "{arguments:?}");
        assert!(refused.errors.contains(error), "{arguments:?}: {}", refused.errors);
    }
}
