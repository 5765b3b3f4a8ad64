//! Programs of PyTorch, run by the interpreter. What they print on a machine without a GPU is what PyTorch printed
//! there (`record.py`), apart from lines that are marked as measured.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn run(gpu: &str, program: &Path, seconds: u32) -> Output {
    Command::new(env!("CARGO_BIN_EXE_torch-python"))
        .args(["--gpu", gpu, "--seconds", &seconds.to_string()])
        .arg(program)
        .current_dir(program.parent().expect("it is in a folder"))
        .output()
        .expect("the interpreter starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn programs(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("the folder exists").flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|kind| kind == "py")).collect();
    files.retain(|path| name(path) != "model"); // A module that others import.
    files.sort();
    files
}

fn name(program: &Path) -> String {
    program.file_stem().expect("it has a name").to_string_lossy().into_owned()
}

/// Programs that do not run, and the reason.
const LEFT_OUT: [(&str, &str, &str); 1] =
    [("sim:t4", "lab_10", "on one GPU it leaves the network on the CPU, as in PyTorch: it runs on two")];

fn is_left_out(gpu: &str, program: &str) -> bool {
    LEFT_OUT.iter().any(|(on, left_out, _)| *on == gpu && *left_out == program)
}

fn compare_with_pytorch(folder: &Path) {
    let mut wrong = Vec::new();
    for program in programs(folder) {
        let name = name(&program);
        if is_left_out("none", &name) {
            continue;
        }
        let expected = here().join("expected").join(format!("{name}.txt"));
        let expected = std::fs::read_to_string(&expected)
            .unwrap_or_else(|error| panic!("{}: {error}: run record.py", expected.display()));
        let output = run("none", &program, 200);
        let printed: String = text(&output.stdout)
            .lines()
            .filter(|line| !line.contains("(measured)"))
            .fold(String::new(), |all, line| all + line + "\n");
        if !output.status.success() {
            wrong.push(format!("{name}: {}", text(&output.stderr)));
        } else if printed != expected {
            let pairs = expected.lines().zip(printed.lines());
            let first = pairs.into_iter().find(|(expected, printed)| expected != printed);
            wrong.push(format!("{name}: PyTorch's line, and ours: {first:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn runs_on(gpu: &str, folder: &Path) {
    let mut wrong = Vec::new();
    for program in programs(folder) {
        if is_left_out(gpu, &name(&program)) {
            continue;
        }
        let output = run(gpu, &program, 200);
        if !output.status.success() {
            wrong.push(format!("{}: {}", name(&program), text(&output.stderr)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn programs_of_the_labs_print_without_a_gpu_what_pytorch_prints() {
    compare_with_pytorch(&here().join("../../labs/python"));
}

#[test]
fn programs_of_the_labs_run_on_a_simulated_gpu() {
    runs_on("sim:t4", &here().join("../../labs/python"));
}

#[test]
fn ranks_run_on_several_simulated_gpus() {
    let program = here().join("../../labs/python/lab_10.py");
    let output = run("sim:t4x2", &program, 200);
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for part in
        ["DataParallel has trained a step on cuda:0", "After all_reduce the ranks hold 1, 1.", "buckets = 3"]
    {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    // The averaged gradients are those of the CPU.
    let on_the_host = std::fs::read_to_string(here().join("expected/lab_10.txt")).expect("the file exists");
    for line in
        on_the_host.lines().filter(|line| line.starts_with("trained_to") || line.starts_with("made_with"))
    {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}

#[test]
fn other_programs_print_without_a_gpu_what_pytorch_prints() {
    compare_with_pytorch(&here().join("programs"));
}

#[test]
fn other_programs_run_on_a_simulated_gpu() {
    runs_on("sim:t4", &here().join("programs"));
}

/// The statements of the tutorials that the course is made from. What they leave open is in a marked prelude.
///
/// They print the same, apart from these:
/// - The deprecation warnings of old names are ours, on standard error.
/// - Without a GPU a few of PyTorch's functions raise, so a prelude ends the program before them.
/// - `many_gpus` puts a model on `cuda:1` where there is one.
#[test]
fn snippets_print_without_a_gpu_what_pytorch_prints() {
    compare_with_pytorch(&here().join("snippets"));
}

#[test]
fn snippets_run_on_simulated_gpus() {
    runs_on("sim:t4", &here().join("snippets"));
    runs_on("sim:t4x2", &here().join("snippets"));
}

/// A page lists what PyTorch has and this course does not.
#[test]
fn the_page_of_missing_names_is_up_to_date() {
    let folder = here().join("..");
    let output = run("none", &folder.join("missing.py"), 60);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(folder.join("MISSING.md")).expect("the page exists");
    assert!(text(&output.stdout) == page, "run torch-python missing.py > MISSING.md");
}
