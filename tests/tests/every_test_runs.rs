//! Checks that every test file is part of a test binary: otherwise it would silently never run.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn every_file_of_tests_is_part_of_a_binary() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // Each folder with the files that are binaries of their own.
    for (folder, others) in [
        ("tensor/tests", &[][..]),
        ("labs/tests", &["terminal"]),
        ("labs/exercises/tests", &[]),
        ("labs/errors/tests", &[]),
        ("kernels/emulator/tests", &[]),
        ("course/tests", &[]),
        ("book/tests", &[]),
        ("tests/tests", &["browser", "wasm"]),
    ] {
        let folder = root.join(folder);
        let main = fs::read_to_string(folder.join("main.rs")).unwrap();
        let modules = main.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
        let run: BTreeSet<&str> = modules.chain(["main"]).chain(others.iter().copied()).collect();
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let is_module = path.extension().is_some_and(|extension| extension == "rs")
                || path.join("mod.rs").exists()
                || path.join("main.rs").exists();
            assert!(!is_module || run.contains(name.as_str()), "{} is not run", path.display());
        }
    }
}

/// A test that claims to run in `.ci/run`, but is not named there, would never run.
#[test]
fn tests_that_are_left_to_ci_are_those_that_it_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let script = fs::read_to_string(root.join(".ci/run")).unwrap();
    let list = script.split("slow=(\n").nth(1).unwrap().split("\n)").next().unwrap();
    let named: BTreeSet<&str> = list.lines().map(str::trim).collect();

    let mut left_out = BTreeSet::new();
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(".rs") {
                let text = fs::read_to_string(&path).unwrap();
                for after in text.split(".ci/run has it\"]\nfn ").skip(1) {
                    left_out.insert(after.split('(').next().unwrap().to_owned());
                }
            }
        }
    }
    assert_eq!(named, left_out.iter().map(String::as_str).collect::<BTreeSet<_>>());
}
