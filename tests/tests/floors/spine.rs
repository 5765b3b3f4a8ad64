//! The spine: the few files that a newcomer reads, in the order that the tensor crate's `lib.rs` gives.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::imports::arrows_of_both;

const MOST_FILES: usize = 14;
const MOST_LINES: usize = 3500;

/// The number of other files that the spine may import. It only shrinks.
const MOST_OUTSIDE: usize = 20;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The files of the spine, in order.
pub fn files() -> Vec<String> {
    let text = read("tensor/src/lib.rs");
    let rows = text.lines().skip_while(|line| !line.starts_with("//! | file | what happens there |")).skip(2);
    let file = |row: &str| row.split('`').nth(1).expect("a row begins with a file").to_owned();
    rows.map_while(|line| line.strip_prefix("//! | ")).map(file).collect()
}

#[test]
fn the_spine_is_short_and_needs_few_other_files() {
    let spine = files();
    assert!(!spine.is_empty() && spine.len() <= MOST_FILES, "{} files", spine.len());
    let lines: usize = spine.iter().map(|file| read(file).lines().count()).sum();
    assert!(lines <= MOST_LINES, "{lines} lines, {MOST_LINES} are allowed");
    let arrows = arrows_of_both(root());
    let mut outside: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
    for file in &spine {
        for to in arrows[file].iter().filter(|to| !spine.contains(to)) {
            outside.entry(to).or_default().push(file);
        }
    }
    assert!(outside.len() > 10, "imports are not found");
    assert_eq!(outside.len(), MOST_OUTSIDE, "files outside, and who imports them: {outside:#?}");
}

/// Names outside the crate are resolved: `kernel.rs` is in `gpu`, and reached through a re-export of `tensor`.
#[test]
fn imports_lead_across_crates() {
    let arrows = arrows_of_both(root());
    let to: BTreeSet<&str> = arrows["tensor/src/ops/launch.rs"].iter().map(String::as_str).collect();
    assert!(to.contains("gpu/src/base/kernel.rs") && to.contains("tensor/src/tensor.rs"), "{to:?}");
}

#[test]
fn each_file_of_the_spine_says_what_it_is_not_and_what_comes_next() {
    let spine = files();
    for (index, file) in spine.iter().enumerate() {
        let text = read(file);
        let top: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
        let top = top.join(" ");
        assert!(top.contains("Not here:"), "{file} does not say what it is not");
        let next = match spine.get(index + 1) {
            None => {
                assert!(top.contains("the end of the spine"), "{file} is the last");
                continue;
            }
            Some(next) => next,
        };
        let (_, after) =
            top.split_once("Next in the spine: ").unwrap_or_else(|| panic!("{file}: what comes next?"));
        let named = after.split('`').nth(1).expect("a file is named");
        assert!(next.ends_with(&format!("/{named}")), "{file} names {named}, but {next} comes next");
    }
}
