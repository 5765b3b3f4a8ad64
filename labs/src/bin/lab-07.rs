fn main() -> std::process::ExitCode {
    labs::main(&labs::lab_07_cudnn::LAB)
}
