//! The C++ compiler that stand-ins are made with.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output};

/// g++, or what `CXX` names.
pub fn gpp() -> Command {
    Command::new(std::env::var_os("CXX").unwrap_or("g++".into()))
}

/// Runs it. A computer without one cannot run these tests, and is told what is missing.
pub fn run(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(Output { status, .. }) if status.success() => Ok(()),
        Ok(output) => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err("this test compiles C++: it takes g++ (on Debian: apt-get install g++)".to_owned())
        }
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// Makes a shared object of one source.
#[allow(dead_code)] // Not all who compile make one.
pub fn shared_object(source: &Path, to: &Path, options: &[&str]) -> Result<(), String> {
    let mut command = gpp();
    command.args(["-std=c++17", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden"]);
    if let Some(name) = to.file_name() {
        command.arg(format!("-Wl,-soname,{}", name.to_string_lossy()));
    }
    // A library among the options is linked only if what stands before it needs it.
    run(command.arg(source).args(options).arg("-o").arg(to).arg("-ldl"))
}
