use std::process::ExitCode;

#[cfg(not(target_family = "wasm"))]
fn main() -> ExitCode {
    labs::verify::main()
}

#[cfg(target_family = "wasm")]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
