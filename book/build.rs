//! Keeps which sources this program is built from, so that it can tell when they have changed since.

use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "src/sources.rs"]
mod sources;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for folder in sources::FOLDERS {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
    }
    let hashes = sources::hashes(&root).expect("the sources can be read");
    let hashes: Vec<(String, u64)> = hashes.into_iter().collect();
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo names a folder"));
    fs::write(folder.join("built_from.rs"), format!("&{hashes:?}")).expect("the folder can be written to");
}
