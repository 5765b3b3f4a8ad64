fn main() -> std::process::ExitCode {
    labs::main(&labs::lab_03_training_loop::LAB)
}
