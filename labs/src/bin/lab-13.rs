fn main() -> std::process::ExitCode {
    labs::main(&labs::lab_13_pitfalls::LAB)
}
