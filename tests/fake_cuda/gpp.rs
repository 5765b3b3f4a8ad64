//! The C++ compiler for the stand-ins.

#[path = "pip.rs"]
pub mod pip;

use std::env;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Zig's C++ compiler, which pip can fetch.
const ZIG: (&str, &str, &str) = ("ziglang", "0.15.2", "ziglang/zig");

/// The compiler that `CXX` names, or g++. If neither exists, Zig's is fetched.
pub fn gpp() -> Result<Command, String> {
    static FOUND: OnceLock<Result<Vec<String>, String>> = OnceLock::new();
    let words = FOUND.get_or_init(find).as_ref()?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    Ok(command)
}

fn find() -> Result<Vec<String>, String> {
    if let Ok(named) = env::var("CXX") {
        return Ok(vec![named]);
    }
    let runs = Command::new("g++").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if runs.is_ok_and(|status| status.success()) {
        return Ok(vec!["g++".to_owned()]);
    }
    let (package, version, file) = ZIG;
    let zig = pip::fetched(package, version, file).map_err(|trouble| {
        format!("this test compiles C++, and there is no g++ (on Debian: apt-get install g++); {trouble}")
    })?;
    Ok(vec![zig.display().to_string(), "c++".to_owned()])
}

/// Runs the compiler.
pub fn run(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(Output { status, .. }) if status.success() => Ok(()),
        Ok(output) => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// Compiles one source to a shared object.
#[allow(dead_code)] // Not every user of this module makes one.
pub fn shared_object(source: &Path, to: &Path, options: &[&str]) -> Result<(), String> {
    let mut command = gpp()?;
    command.args(["-std=c++17", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden"]);
    // A function of another library is looked up when it is called. Zig's default is to look it up when the object is
    // loaded.
    command.arg("-Wl,-z,lazy");
    if let Some(name) = to.file_name() {
        command.arg(format!("-Wl,-soname,{}", name.to_string_lossy()));
    }
    // A library among the options is linked only if something before it needs it.
    run(command.arg(source).args(options).arg("-o").arg(to).arg("-ldl"))
}
