//! Lab 12: a program in CUDA C++, compiled, run and checked by the emulator.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use cuda_emulator::{Checks, Program, report};

/// The program that runs if no file is named.
const EXAMPLE: &str = include_str!("../examples/vector_add.cu");

const HELP: &str = "\
Compiles a program in CUDA C++, runs it on an emulated GPU, and checks it.

Usage: cargo run --bin lab-12 -- [FILE.cu] [--check CHECKS] [--format text|json]

  FILE.cu          the program; without it, an example that adds two vectors
  --check CHECKS   memcheck, racecheck, initcheck, synccheck, leakcheck, or all, with commas between them
                   [default: memcheck,racecheck]
  --format FORMAT  text or json [default: text]
  --show           prints the program instead of running it
  -h, --help       prints this

Floating-point products and sums are never fused, as with nvcc's --fmad=false; times are not modelled.

Exit code: 0 if nothing was found, 1 if something was, 2 if the program or a flag is wrong.
";

/// How to go on after the example.
const NEXT: &str = "
That was the example. To change it: cargo run --bin lab-12 -- --show > my.cu
Then: cargo run --bin lab-12 -- my.cu --check memcheck,racecheck
";

struct Options {
    file: Option<String>,
    checks: Checks,
    json: bool,
    show: bool,
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)) {
        Ok(Some(options)) => run(&options),
        Ok(None) => print(HELP, 0),
        Err(trouble) => refuse(&format!("error: {trouble}\n\nFor more information, try '--help'.\n")),
    }
}

/// Prints, and ends with a code. A reader that has gone, as `head` does, changes nothing; a full disk is an error.
fn print(text: &str, code: u8) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(trouble) if trouble.kind() != ErrorKind::BrokenPipe => {
            refuse(&format!("error: the output cannot be written: {trouble}\n"))
        }
        _ => ExitCode::from(code),
    }
}

/// A closed stderr is no reason to stop: the exit code still says it.
fn refuse(text: &str) -> ExitCode {
    let _ = std::io::stderr().write_all(text.as_bytes());
    ExitCode::from(2)
}

/// None: the help is wanted.
fn options(arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let default = Checks { race: true, ..Checks::MEMORY };
    let mut options = Options { file: None, checks: default, json: false, show: false };
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let (name, joined) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
            _ => (argument.clone(), None),
        };
        let mut value =
            || joined.clone().or_else(|| arguments.next()).ok_or(format!("`{name}` needs a value"));
        match name.as_str() {
            "-h" | "--help" => return Ok(None),
            "--show" => options.show = true,
            "--check" => options.checks = Checks::parse(&value()?)?,
            "--format" => {
                options.json = match value()?.as_str() {
                    "text" => false,
                    "json" => true,
                    other => return Err(format!("there is no format `{other}`: there are text and json")),
                }
            }
            flag if flag.starts_with('-') => return Err(format!("there is no flag `{flag}`")),
            _ if options.file.is_some() => return Err(format!("`{argument}`: one file at a time")),
            _ => options.file = Some(argument),
        }
    }
    Ok(Some(options))
}

fn run(options: &Options) -> ExitCode {
    let (name, text) = match &options.file {
        None => ("vector_add.cu".to_owned(), EXAMPLE.to_owned()),
        Some(file) => match std::fs::read(file) {
            Ok(bytes) => (file.clone(), String::from_utf8_lossy(&bytes).into_owned()),
            Err(trouble) => return refuse(&format!("error: the file {file} cannot be read: {trouble}\n")),
        },
    };
    if options.show {
        return print(&text, 0);
    }
    let folder = Path::new(&name).parent().map(Path::to_path_buf).unwrap_or_default();
    let includes = |header: &str| std::fs::read_to_string(folder.join(header)).ok();
    let program = match Program::checked(&name, &text, &includes) {
        Ok(program) => program,
        Err(rejected) if options.json => return print(&report::json::rejected(&rejected), 2),
        Err(rejected) => return refuse(&rejected.text()),
    };
    let Some(run) = program.run(options.checks) else {
        return refuse(&format!("error: {name} has no `main`: host code has to launch its kernels\n"));
    };
    let text = if options.json {
        report::json::json(&program.files, &run)
    } else {
        let next = if options.file.is_none() { NEXT } else { "" };
        format!("{}{}{next}", run.output, report::text(&program.files, &run, options.checks))
    };
    print(&text, run.exit_code() as u8)
}
