//! The memory of a simulated GPU after each line of a program is PyTorch's, to the byte (`memory.py` records it).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs with known differences, and the first line that differs.
const DIFFERENT: [(&str, u32, &str); 4] = [
    ("lab_04", 189, "Adam with `fused=True` has its step counts on the GPU, 512 bytes for each parameter"),
    ("lab_06_program", 33, "in autocast, `cross_entropy` takes the logarithm in float16 and keeps it"),
    ("mixed_precision", 23, "the same"),
    ("lab_11", 256, "Adam's temporary tensors, as large as the model, have left a segment"),
];

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The program with a call of `line` after each of the recorded lines: `line:column`.
fn with_calls(program: &str, places: &str) -> String {
    let places: Vec<(usize, usize)> = places
        .split(' ')
        .filter_map(|place| place.split_once(':'))
        .map(|(line, column)| (line.parse().expect("a line"), column.parse().expect("a column")))
        .collect();
    let mut text = String::new();
    for (number, line) in program.lines().enumerate().map(|(index, line)| (index + 1, line)) {
        text.push_str(&format!("{line}\n"));
        if let Some((_, column)) = places.iter().find(|(place, _)| *place == number) {
            text.push_str(&format!("{:column$}__import__('lines').line({number})\n", ""));
        }
    }
    text + "\n__import__('lines').report()\n"
}

/// What the program reports, in a folder with its neighbours.
fn states(name: &str, places: &str) -> String {
    let from = here().join(if name.starts_with("lab_") { "../../labs/python" } else { "snippets" });
    let folder = std::env::temp_dir().join(format!("memory-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for temporary files");
    for neighbour in ["model.py", "lab_01.py"] {
        let _ = fs::copy(from.join(neighbour), folder.join(neighbour));
    }
    fs::copy(here().join("memory/lines.py"), folder.join("lines.py")).expect("the module exists");
    let program = fs::read_to_string(from.join(format!("{name}.py"))).expect("the program exists");
    let path = folder.join(format!("{name}.py"));
    fs::write(&path, with_calls(&program, places)).expect("the folder can be written");
    let output = Command::new(env!("CARGO_BIN_EXE_torch-python"))
        .args(["--gpu", "sim:t4", "--seconds", "200"])
        .arg(&path)
        .current_dir(&folder)
        .output()
        .expect("the interpreter starts");
    let _ = fs::remove_dir_all(&folder);
    let printed = String::from_utf8_lossy(&output.stdout);
    match printed.split_once("\n== memory\n") {
        Some((_, states)) => states.to_owned(),
        None => panic!("{name}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

#[test]
fn memory_after_each_line_is_pytorchs() {
    let mut wrong = Vec::new();
    let mut recorded: Vec<PathBuf> = fs::read_dir(here().join("memory"))
        .expect("the folder exists")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    recorded.retain(|path| path.extension().is_some_and(|kind| kind == "txt"));
    recorded.sort();
    assert!(recorded.len() > 25, "programs are missing");
    for path in recorded {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let expected = fs::read_to_string(&path).expect("it exists");
        let (places, expected) = expected.split_once('\n').expect("the places come first");
        let ours = states(&name, places);
        let differs = expected.lines().zip(ours.lines()).find(|(theirs, ours)| theirs != ours);
        let known = DIFFERENT.iter().find(|(other, ..)| *other == name);
        match (differs, known) {
            (None, None) => assert_eq!(expected, ours, "{name}"),
            (Some((theirs, _)), Some((_, line, _))) if theirs.starts_with(&format!("{line} ")) => {}
            (None, Some(_)) => wrong.push(format!("{name} does not differ any more: take it off the list")),
            (Some((theirs, ours)), _) => {
                wrong.push(format!(
                    "{name}: line, allocated and reserved are {theirs} in PyTorch, and {ours} here"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
