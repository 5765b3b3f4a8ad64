fn main() -> std::process::ExitCode {
    labs::main(&labs::lab_06_amp::LAB)
}
