fn main() -> std::process::ExitCode {
    labs::main(&labs::lab_09_feeding::LAB)
}
