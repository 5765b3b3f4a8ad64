//! Lab 12 as a program. A web page takes the library instead.

#[cfg(not(target_family = "wasm"))]
fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    lab_12::terminal::main(&arguments)
}

#[cfg(target_family = "wasm")]
fn main() {}
