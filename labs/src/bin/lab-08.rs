fn main() -> std::process::ExitCode {
    labs::main(&labs::lab_08_asynchrony::LAB)
}
