//! Lab 12: compiles, runs and checks a program in CUDA C++ with the emulator.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use cuda_emulator::Checks;
use lab_12::{EXAMPLE, Wanted, is_json};

const HELP: &str = "\
Compiles a program in CUDA C++, runs it on an emulated GPU, and checks it.

Usage: cargo run --bin lab-12 -- [FILE.cu] [--check CHECKS | --counters] [--format text|json]
       cargo run --bin lab-12 -- puzzle [NUMBER [FILE.cu]] [--show] [--format text|json]
       cargo run --bin lab-12 -- case [NAME [FILE.cu]] [--show] [--format text|json]

  puzzle           lists the puzzles, writes the file to begin one with, or judges a kernel for it; with --show,
                   prints the kernel with its host half, for nvcc
  case             lists programs with a mistake, shows one with its report, or judges a corrected one
  FILE.cu          the program; without it, an example that adds two vectors
  --check CHECKS   memcheck, racecheck, initcheck, synccheck, leakcheck, or all, with commas between them
                   [default: memcheck,racecheck]
  --counters       counts instead of checking what each kernel asks of the hardware, as Nsight Compute does
  --registers N    how many registers a thread takes, as nvcc's -Xptxas -v says it, for the occupancy
  --format FORMAT  text or json [default: text]
  --show           prints the program instead of running it
  -h, --help       prints this

Floating-point products and sums are never fused, as with nvcc's --fmad=false; times are not modelled.

Exit code: 0 if nothing was found, 1 if something was, 2 if the program or a flag is wrong.
";

/// The next steps after the example.
const NEXT: &str = "
That was the example. To change it: cargo run --bin lab-12 -- --show > my.cu
Then: cargo run --bin lab-12 -- my.cu --check memcheck,racecheck
";

struct Options {
    file: Option<String>,
    wanted: Wanted,
    show: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(said) = lab_12::commands::run(&arguments) {
        return if said.errors.is_empty() { print(&said.output, said.code) } else { refuse(&said.errors) };
    }
    match options(arguments.into_iter()) {
        Ok(Some(options)) => run(&options),
        Ok(None) => print(HELP, 0),
        Err(trouble) => refuse(&format!("error: {trouble}\n\nFor more information, try '--help'.\n")),
    }
}

/// Prints text and returns the exit code. A closed pipe, as with `head`, is no error; a full disk is one.
fn print(text: &str, code: u8) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(trouble) if trouble.kind() != ErrorKind::BrokenPipe => {
            refuse(&format!("error: the output cannot be written: {trouble}\n"))
        }
        _ => ExitCode::from(code),
    }
}

/// Reports an error. A closed stderr is ignored: the exit code still reports it.
fn refuse(text: &str) -> ExitCode {
    let _ = std::io::stderr().write_all(text.as_bytes());
    ExitCode::from(2)
}

/// Parses the options; returns `None` if the help is requested.
fn options(arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let mut options = Options { file: None, wanted: Wanted::default(), show: false };
    let mut arguments = arguments;
    let mut is_checked = false;
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
            "--check" => {
                options.wanted.checks = Checks::parse(&value()?)?;
                is_checked = true;
            }
            "--counters" => options.wanted.counters = true,
            "--registers" => options.wanted.registers = Some(registers(&value()?)?),
            "--format" => options.wanted.json = is_json(&value()?)?,
            flag if flag.starts_with('-') => return Err(format!("there is no flag `{flag}`")),
            _ if options.file.is_some() => return Err(format!("`{argument}`: one file at a time")),
            _ => options.file = Some(argument),
        }
    }
    if is_checked && options.wanted.counters {
        return Err("`--check` and `--counters` are two runs: checks would be counted".to_owned());
    }
    if options.wanted.registers.is_some() && !options.wanted.counters {
        return Err("`--registers` is for the occupancy that `--counters` shows".to_owned());
    }
    Ok(Some(options))
}

/// Parses a register count. A thread has at most 255 registers.
fn registers(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=255).contains(number));
    number.ok_or_else(|| format!("`--registers {text}`: a thread takes 1 to 255 registers"))
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
    let said = lab_12::run(&name, &text, &includes, options.wanted);
    if !said.errors.is_empty() {
        return refuse(&said.errors);
    }
    let next = if options.file.is_none() && !options.wanted.json { NEXT } else { "" };
    print(&format!("{}{next}", said.output), said.code)
}
