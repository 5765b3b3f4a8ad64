fn main() -> std::process::ExitCode {
    labs::main(&labs::lab_00_setup::LAB)
}
