fn main() -> std::process::ExitCode {
    labs::main(&labs::lab_02_golden_rule::LAB)
}
