//! Names the files that there are as modules, so that an editor knows what they are part of. Nothing depends on this package: a
//! mistake in a student's file keeps nothing else from building.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() -> std::io::Result<()> {
    let folder = env::current_dir()?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let mut modules = String::new();
    for file in files {
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let is_exercise = file.extension().is_some_and(|extension| extension == "rs")
            && stem.starts_with(|first: char| first.is_ascii_digit())
            && stem.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
        if is_exercise {
            let module = format!("x{}", stem.replace('-', "_"));
            let _ = writeln!(modules, "#[path = {file:?}]\npub mod {module};");
        }
    }
    let out = env::var_os("OUT_DIR").unwrap_or_default();
    fs::write(Path::new(&out).join("modules.rs"), modules)
}
