fn main() -> std::process::ExitCode {
    labs::main(&labs::lab_05_monitoring::LAB)
}
