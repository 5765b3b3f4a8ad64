fn main() -> std::process::ExitCode {
    labs::main(&labs::lab_10_many_gpus::LAB)
}
