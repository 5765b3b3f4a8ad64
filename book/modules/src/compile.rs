//! Compiles a package for the pages.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use wasm_encoder::{RawSection, SectionId};
use wasmparser::Parser;

use crate::progress::{self, Step};
use crate::{Module, Split, Whole, split};

const TARGET: &str = "wasm32-unknown-unknown";

/// Compiles a package of the checkout at `root` with the profile of its name, and splits the module: for each entry of its table
/// `names` has the name of its piece. What Cargo makes goes to `target`; how far it is, `told` is told. The error says in one line why
/// that cannot be.
pub fn compile(
    module: &Module,
    names: &[impl AsRef<str>],
    root: &Path,
    target: &Path,
    told: &mut dyn FnMut(Step),
) -> Result<Split, String> {
    let (made, linked) = linked(module.package, module.package, root, target, told)?;
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    split(&linked, module.table, &names).map_err(|error| format!("{made}: {error}"))
}

/// Compiles a package that no part is split off from, likewise.
pub fn compile_whole(
    package: &Whole,
    root: &Path,
    target: &Path,
    told: &mut dyn FnMut(Step),
) -> Result<Vec<u8>, String> {
    let (made, linked) = linked(package.package, package.profile, root, target, told)?;
    stripped(&linked).map_err(|error| format!("{made}: {error}"))
}

/// The module of a package as it was linked, and its file.
fn linked(
    package: &str,
    profile: &str,
    root: &Path,
    target: &Path,
    told: &mut dyn FnMut(Step),
) -> Result<(String, Vec<u8>), String> {
    // Checked first, so that nothing is fetched in vain.
    let manifest = root.join("Cargo.toml");
    if !manifest.is_file() {
        return Err(format!(
            "`{package}` cannot be compiled for the page: there is no {}",
            manifest.display()
        ));
    }
    fetch_target(told)?;
    let failed = |error| format!("cargo: {error}");
    let mut cargo = Command::new(cargo())
        .args(["rustc", "--locked", "--package", package, "--lib", "--profile", profile])
        // Where a library for Rust is asked for besides, as the tests do, Cargo leaves out `lto`.
        .args(["--crate-type", "cdylib", "--target", TARGET, "--target-dir"])
        .arg(target)
        // Who refers to whom is written down, for whoever splits the module. It goes no further.
        .args(["--", "-C", "link-arg=--emit-relocs"])
        .current_dir(root)
        .envs(progress::ENVIRONMENT)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let said = match cargo.stderr.take() {
        Some(says) => progress::follow(says, told),
        None => String::new(),
    };
    if !cargo.wait().map_err(failed)?.success() {
        let error = said.lines().find(|line| line.starts_with("error")).unwrap_or("cargo failed");
        return Err(format!("`{package}` cannot be compiled for the page: {error}"));
    }
    let made = target.join(TARGET).join(profile).join(format!("{}.wasm", package.replace('-', "_")));
    let made_at = made.display().to_string();
    let linked = fs::read(&made).map_err(|error| format!("{made_at}: {error}"))?;
    Ok((made_at, linked))
}

/// A module without names and relocations, which nobody needs once it is linked.
fn stripped(linked: &[u8]) -> Result<Vec<u8>, String> {
    let mut kept = wasm_encoder::Module::new();
    for payload in Parser::new(0).parse_all(linked) {
        let payload = payload.map_err(|error| error.to_string())?;
        if let Some((id, range)) = payload.as_section()
            && id != SectionId::Custom as u8
        {
            kept.section(&RawSection { id, data: &linked[range.start as usize..range.end as usize] });
        }
    }
    Ok(kept.finish())
}

/// Fetches Rust's own libraries for WebAssembly where they are missing: not every rustup does for a `rust-toolchain.toml` that
/// names them.
fn fetch_target(told: &mut dyn FnMut(Step)) -> Result<(), String> {
    let rustc = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let libraries = rustc.map_err(|error| format!("rustc: {error}"))?.stdout;
    if Path::new(String::from_utf8_lossy(&libraries).trim()).is_dir() {
        return Ok(());
    }
    told(Step::Fetching);
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
