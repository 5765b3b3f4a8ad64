//! A student compiles a lab before seeing anything of the course, so no dependency may slip in that no lab needs.

use std::collections::BTreeSet;
use std::process::Command;

/// The packages that `cargo run --bin lab-03` compiles on Linux, including build-time ones, as `cargo tree` prints
/// them: `todevice v0.1.0 (/path)`.
fn packages() -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--package", "labs", "--edges", "normal,build", "--prefix", "none"])
        .args(["--target", "x86_64-unknown-linux-gnu", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_lab_brings_exactly_the_crates_listed_here() {
    let tree = packages();
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

/// Without rows of its own, a new crate would be compiled without optimization, which shows only in its speed.
#[test]
fn a_crate_below_the_labs_has_its_rows_in_the_profiles() {
    /// It contains only text.
    const TEXT: &str = "kernels";
    let manifest = include_str!("../../Cargo.toml");
    let row = |profile: &str, name: &str| {
        let title = format!("[profile.{profile}.package.{name}]\n");
        let (_, row) = manifest.split_once(&title)?;
        row.split("\n[").next()
    };
    let tree = packages();
    let own = tree.lines().filter(|line| line.contains(" (/") && !line.contains("(proc-macro)"));
    let names: BTreeSet<&str> = own.filter_map(|line| line.split(' ').next()).collect();
    let below: Vec<&str> = names.into_iter().filter(|name| !["labs", TEXT].contains(name)).collect();
    assert!(below.contains(&"todevice") && below.contains(&"todevice-gpu"), "{below:?}");
    for name in below {
        let dev =
            row("dev", name).unwrap_or_else(|| panic!("Cargo.toml has no [profile.dev.package.{name}]"));
        // Code that must be fast on a laptop must be fast in a page.
        for profile in ["player", "exercises-page"] {
            let is_there = row(profile, name).is_some_and(|row| row.contains("opt-level = "));
            assert!(
                is_there || !dev.contains("opt-level = "),
                "Cargo.toml has no opt-level in [profile.{profile}.package.{name}]"
            );
        }
    }
}
