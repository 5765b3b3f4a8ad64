fn main() -> std::process::ExitCode {
    labs::main(&labs::lab_04_memory::LAB)
}
