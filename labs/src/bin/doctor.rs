fn main() -> std::process::ExitCode {
    labs::main(&labs::doctor::doctor(std::env::args_os().skip(1)))
}
