//! A student compiles a lab before seeing anything of the course: nothing may slip in that no lab needs.

use std::collections::BTreeSet;
use std::process::Command;

/// The crates that `cargo run --bin lab-03` compiles, on Linux, those that run at compile time included.
#[test]
fn a_lab_brings_exactly_the_crates_listed_here() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--package", "labs", "--edges", "normal,build", "--prefix", "none"])
        .args(["--target", "x86_64-unknown-linux-gnu", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let found: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    let found: BTreeSet<&str> = found.into_iter().filter(|name| !name.is_empty()).collect();
    let listed: BTreeSet<&str> = include_str!("../lab_crates.txt").lines().collect();
    let new: Vec<_> = found.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "if a lab really needs another crate, list it in tests/lab_crates.txt: new {new:?}, gone {gone:?}"
    );
}
