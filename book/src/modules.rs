//! What of the pages is compiled to WebAssembly.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::course::Course;

const TARGET: &str = "wasm32-unknown-unknown";

/// The check of the exercises, which `exercise-worker.js` fetches under this name.
pub const EXERCISES: &str = "exercises.wasm";

/// Compiles that check, if the checkout has its source. The error says in a line why it cannot be.
pub fn exercises(course: &Course) -> Result<Option<Vec<u8>>, String> {
    if !course.root().join("labs/exercises/page/Cargo.toml").is_file() {
        return Ok(None);
    }
    let module = compiled(course, "exercises-page");
    module
        .map(Some)
        .map_err(|why| format!("no exercise can be checked in its page, only in a terminal: {why}"))
}

/// Compiles a package of the checkout, with the profile of its name.
fn compiled(course: &Course, package: &str) -> Result<Vec<u8>, String> {
    fetch_target()?;
    let target = course.root().join("target");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--locked", "--package", package, "--profile", package])
        .args(["--target", TARGET, "--target-dir"])
        .arg(&target)
        .current_dir(course.root())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(last_line(&output.stderr));
    }
    let file = format!("{}.wasm", package.replace('-', "_"));
    let file = target.join(TARGET).join(package).join(file);
    fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Fetches Rust's own libraries for WebAssembly where they are missing.
fn fetch_target() -> Result<(), String> {
    let rustc = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let rustc = rustc.map_err(|error| format!("rustc: {error}"))?;
    if Path::new(String::from_utf8_lossy(&rustc.stdout).trim()).is_dir() {
        return Ok(());
    }
    let rustup = Command::new("rustup").args(["target", "add", TARGET]).output();
    match rustup.map_err(|error| format!("rustup: {error}"))? {
        output if output.status.success() => Ok(()),
        output => Err(format!("`rustup target add {TARGET}`: {}", last_line(&output.stderr))),
    }
}

fn last_line(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.trim().lines().last().unwrap_or("it fails without a word").to_owned()
}
