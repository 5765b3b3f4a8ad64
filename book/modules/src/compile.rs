//! Compiles a package for the pages.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use crate::{Module, Split, split};

const TARGET: &str = "wasm32-unknown-unknown";

/// Compiles a package of the checkout at `root` with the profile of its name, and splits the module: for each entry of its table
/// `names` has the name of its piece. What Cargo makes goes to `target`. The error says in one line why that cannot be.
pub fn compile(
    module: &Module,
    names: &[impl AsRef<str>],
    root: &Path,
    target: &Path,
) -> Result<Split, String> {
    let package = module.package;
    fetch_target()?;
    let output = Command::new(cargo())
        .args(["rustc", "--quiet", "--locked", "--package", package, "--profile", package])
        // Where a library for Rust is asked for besides, as the tests do, Cargo leaves out `lto`.
        .args(["--crate-type", "cdylib", "--target", TARGET, "--target-dir"])
        .arg(target)
        // Who refers to whom is written down, for whoever splits the module. It goes no further.
        .args(["--", "-C", "link-arg=--emit-relocs"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let error = said.lines().find(|line| line.starts_with("error")).unwrap_or("cargo failed");
        return Err(format!("`{package}` cannot be compiled for the page: {error}"));
    }
    let made = target.join(TARGET).join(package).join(format!("{}.wasm", package.replace('-', "_")));
    let linked = fs::read(&made).map_err(|error| format!("{}: {error}", made.display()))?;
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    split(&linked, module.table, &names).map_err(|error| format!("{}: {error}", made.display()))
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
fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
