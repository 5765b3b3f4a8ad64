//! Lists the exercises that there are, in book order, so that a new one needs its file and nothing else.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=source");
    // Each exercise under the one that comes before it in its chapter, or under the number of its chapter.
    let mut after: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in fs::read_dir("source").expect("the exercises can be read") {
        let file = entry.expect("a file").path();
        let id = file.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        let text = fs::read_to_string(&file).expect("an exercise can be read");
        let before = |line: &str| -> Option<String> {
            Some(line.strip_prefix("pub const AFTER: &str = \"")?.strip_suffix("\";")?.to_owned())
        };
        let chapter = || id.split('-').next().unwrap_or_default().to_owned();
        after.entry(text.lines().find_map(before).unwrap_or_else(chapter)).or_default().push(id.to_owned());
    }

    let mut list = String::new();
    let mut chapters: Vec<String> = after.keys().filter(|key| !key.contains('-')).cloned().collect();
    chapters.sort_by_key(|chapter| chapter == "00"); // Setup is an appendix, at the end of the book.
    for chapter in &chapters {
        write_after(chapter, &mut after, &mut list);
    }
    assert!(after.is_empty(), "there is no exercise to come after: {after:?}");
    // A macro, and not the modules themselves: their paths are then the same on every computer.
    let files = format!("macro_rules! files {{\n    ($list:ident) => {{ $list! {{\n{list}    }} }};\n}}\n");
    let out = env::var_os("OUT_DIR").expect("Cargo names a folder");
    fs::write(Path::new(&out).join("files.rs"), files).expect("the folder can be written to");
}

/// Writes what comes after an exercise, or first in a chapter; of several, each with all that comes after it.
fn write_after(before: &str, after: &mut BTreeMap<String, Vec<String>>, list: &mut String) {
    let mut ids = after.remove(before).unwrap_or_default();
    ids.sort();
    for id in ids {
        let _ = writeln!(list, "        x{} = \"../source/{id}.rs\",", id.replace('-', "_"));
        write_after(&id, after, list);
    }
}
