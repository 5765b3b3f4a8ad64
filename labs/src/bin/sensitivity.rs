use std::process::ExitCode;

#[cfg(not(target_family = "wasm"))]
fn main() -> ExitCode {
    labs::sensitivity::main()
}

#[cfg(target_family = "wasm")]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
