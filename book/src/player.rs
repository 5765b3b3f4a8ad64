//! What a page runs: the labs and the exercises, compiled to WebAssembly, and the scripts of the workers that run them.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use questions::hash;

use crate::course::Course;

const TARGET: &str = "wasm32-unknown-unknown";

/// The folder of the pages that all of it is in.
const FOLDER: &str = "play";

/// Scripts that run beside a page. They lie beside the modules.
const WORKERS: [&str; 3] = ["run-worker.js", "experiments-worker.js", "exercise-worker.js"];

/// The files, and which of them pages name.
#[derive(Clone)]
pub struct Player {
    pub files: BTreeMap<String, Vec<u8>>,
    /// The module of the labs, by its path.
    pub labs: String,
    /// The module of the exercises.
    pub exercises: String,
}

/// Compiles the modules. The error says in one line why that cannot be.
pub fn build(course: &Course) -> Result<Player, String> {
    fetch_target()?;
    let mut files = BTreeMap::new();
    let labs = module(&compiled(course, "player", "player.wasm")?, "labs", &mut files)?;
    let exercises =
        module(&compiled(course, "exercises-page", "exercises_page.wasm")?, "exercises", &mut files)?;
    for worker in WORKERS {
        let file = format!("book/theme/{worker}");
        files.insert(format!("{FOLDER}/{worker}"), course.read(&file)?.into_bytes());
    }
    Ok(Player { files, labs, exercises })
}

/// Compiles a package of the checkout, with the profile of its name.
fn compiled(course: &Course, package: &str, file: &str) -> Result<PathBuf, String> {
    let target = course.root().join("target");
    let output = Command::new(cargo())
        .args(["rustc", "--quiet", "--locked", "--package", package, "--profile", package])
        // Where a library for Rust is asked for besides, as the tests do, Cargo leaves out `lto`.
        .args(["--crate-type", "cdylib", "--target", TARGET, "--target-dir"])
        .arg(&target)
        // Of the profile's `strip` Cargo makes one that leaves the names in, and they weigh as much as all words of the labs.
        .args(["--", "-C", "strip=symbols"])
        .current_dir(course.root())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let error = said.lines().find(|line| line.starts_with("error")).unwrap_or("cargo failed");
        return Err(format!("`{package}` cannot be compiled for the page: {error}"));
    }
    Ok(target.join(TARGET).join(package).join(file))
}

/// Puts a module among the files, under a name that changes with it, so that a browser may keep it for good.
fn module(made: &Path, name: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<String, String> {
    let bytes = fs::read(made).map_err(|error| format!("{}: {error}", made.display()))?;
    let path = format!("{FOLDER}/{name}-{:08x}.wasm", hash(bytes.iter().copied()) as u32);
    files.insert(path.clone(), bytes);
    Ok(path)
}

/// Fetches Rust's own libraries for WebAssembly where they are missing: not every rustup does for a `rust-toolchain.toml` that
/// names them.
fn fetch_target() -> Result<(), String> {
    let rustc = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let libraries = rustc.map_err(|error| format!("rustc: {error}"))?.stdout;
    if Path::new(String::from_utf8_lossy(&libraries).trim()).is_dir() {
        return Ok(());
    }
    match Command::new("rustup").args(["target", "add", TARGET]).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let why = said.trim().lines().last().unwrap_or("it failed").to_owned();
            Err(format!(
                "Rust's libraries for {TARGET} are missing, and `rustup target add {TARGET}` says: {why}"
            ))
        }
        Err(_) => {
            Err(format!("Rust's libraries for {TARGET} are missing, and there is no rustup to fetch them"))
        }
    }
}

/// The cargo that runs this program, or the one on the PATH.
fn cargo() -> std::ffi::OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
