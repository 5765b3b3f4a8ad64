fn main() -> std::process::ExitCode {
    labs::main(&labs::lab_11_checkpoints::LAB)
}
