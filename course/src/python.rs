//! `cargo course python`: a program of PyTorch on a simulated GPU. `torch/` has the interpreter, which is compiled apart
//! from the labs, when it is first asked for.

use std::process::Command;

use labs::Stop;
use labs::stdio::to_stdout;

use crate::workplace::{failed, root};

/// Runs `torch-python` with these flags. Paths in them are those of the caller's folder, which stays the current one.
pub fn python(flags: &[String]) -> Result<(), Stop> {
    let manifest = root().join("torch/Cargo.toml");
    if !manifest.exists() {
        return Err(failed(
            "a pack has no interpreter of Python: clone the course, and run this command there",
        ));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("torch/target"), Into::into);
    if !target.join("debug").join(format!("torch-python{}", std::env::consts::EXE_SUFFIX)).exists() {
        to_stdout("Compiling the interpreter of Python takes about four minutes, once.\n");
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = Command::new(&cargo)
        .args(["build", "--locked", "--manifest-path"])
        .arg(&manifest)
        .arg("--target-dir")
        .arg(&target)
        .status()
        .map_err(|error| failed(format!("cargo: {error}")))?;
    if !build.success() {
        return Err(Stop { message: String::new(), exit_code: build.code().unwrap_or(1) as u8 });
    }
    run(Command::new(target.join("debug/torch-python")).args(flags))
}

/// The interpreter takes this process's place, so that Ctrl-C is its own.
#[cfg(unix)]
fn run(program: &mut Command) -> Result<(), Stop> {
    Err(failed(format!("torch-python: {}", std::os::unix::process::CommandExt::exec(program))))
}

#[cfg(not(unix))]
fn run(program: &mut Command) -> Result<(), Stop> {
    let status = program.status().map_err(|error| failed(format!("torch-python: {error}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(Stop { message: String::new(), exit_code: status.code().unwrap_or(1) as u8 }),
    }
}
