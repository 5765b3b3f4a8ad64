//! A file of tests that no binary names would not run, and nobody would miss it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn every_file_of_tests_is_part_of_a_binary() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // Each with what is a binary of its own.
    for (folder, others) in [
        ("tensor/tests", &[][..]),
        ("labs/tests", &["terminal"]),
        ("labs/exercises/tests", &[]),
        ("labs/errors/tests", &[]),
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
