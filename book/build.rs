//! Keeps which sources this program is built from, so that it can tell when they have changed since; and which pages
//! there are, so that their code is tested.

use std::path::PathBuf;
use std::{env, fs};

#[path = "src/sources.rs"]
mod sources;

fn main() {
    // Asked while it runs: a checkout may move together with this compiled script.
    let folder = |name| PathBuf::from(env::var_os(name).expect("Cargo names a folder"));
    let (root, out) = (folder("CARGO_MANIFEST_DIR").join(".."), folder("OUT_DIR"));
    let write = |file, text| fs::write(out.join(file), text).expect("the folder can be written to");

    for folder in sources::FOLDERS {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
    }
    let hashes = sources::hashes(&root).expect("the sources can be read");
    let hashes: Vec<(String, u64)> = hashes.into_iter().collect();
    write("built_from.rs", format!("&{hashes:?}"));

    // Not the folder of the chapters: this program would be built again after each change of a page.
    let summary = root.join("book/chapters/SUMMARY.md");
    println!("cargo::rerun-if-changed={}", summary.display());
    let summary = fs::read_to_string(summary).expect("the summary can be read");
    let links = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let chapters = links.map(|page| format!("book/chapters/{page}"));
    // mdBook takes the page for addresses that lead nowhere without being told.
    let others = ["README.md", "book/chapters/404.md"].map(str::to_owned);
    let pages: Vec<String> = others.into_iter().chain(chapters).collect();
    write("pages.rs", format!("pages!{pages:?};"));
}
