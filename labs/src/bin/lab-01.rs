fn main() -> std::process::ExitCode {
    labs::main(&labs::lab_01_devices::LAB)
}
