//! Lab 12 in a terminal. A web page uses the library.

#[cfg(not(target_family = "wasm"))]
fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    lab_12::terminal::main(&arguments)
}

#[cfg(target_family = "wasm")]
fn main() {}
