//! The lab in a terminal: flags, output and exit code.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::ladder::LADDERS;
use crate::{EXAMPLE, Response, Wanted, card, commands, compare, is_json, launch, real, step, train};
use cuda_emulator::Checks;
use todevice_figures::profile::ALL;

const HELP: &str = "\
Compiles a program in CUDA C++, runs it on an emulated GPU, and checks it.

Usage: cargo run --bin lab-12 -- [FILE.cu] [--check CHECKS | --counters | --step] [--format text|json]
       cargo run --bin lab-12 -- puzzle [NAME [FILE.cu]]              lists, begins, or checks a puzzle; --help has more
       cargo run --bin lab-12 -- case [NAME [FILE.cu]]                lists, begins, or checks a faulty kernel
       cargo run --bin lab-12 -- ladder NAME [--gpu GPU] [--format text|json]
       cargo run --bin lab-12 -- launch            launches a kernel from Rust
       cargo run --bin lab-12 -- train [FILE.cu]   trains a network with your own kernels; see train --help
       cargo run --bin lab-12 -- compare           also runs the chapter's programs on this computer's GPU

  FILE.cu          the program [default: an example that adds two vectors]
  --check CHECKS   memcheck, racecheck, initcheck, synccheck, leakcheck, or all, separated by commas
                   [default: memcheck,racecheck]
  --counters       counts each kernel's use of the hardware, as Nsight Compute does, instead of checking it
  ladder NAME      the steps from a simple to a fast kernel, with counters and modelled times: reduction or matmul
  --gpu GPU        the simulated card, which memory, occupancy and times are modelled for: auto | sim[:PROFILE]
                   [default: sim:t4]; for a ladder also all: its times on every card
  --registers N    number of registers per thread for the occupancy, as printed by nvcc -Xptxas -v
  --gpu real       runs the kernels on this computer's NVIDIA GPU, compiled by NVRTC, and checks nothing
  --step           shows the steps of one warp: lanes, variables, and shared memory
  --block X,Y,Z    the block to step through [default: 0,0,0]
  --warp N         the warp of that block [default: 0]
  --launch N       the launch to step through; 1 is the first [default: 1]
  --format FORMAT  text or json [default: text]
  --show           prints the program instead of running it
  -h, --help       prints this help

Floating-point products and sums are never fused, as with nvcc's --fmad=false. Times are modelled, not measured.

Exit code: 0 without findings, 1 with findings, 2 if the program or a flag is wrong.
";

const NEXT: &str = "
That was the example. To change it: cargo run --bin lab-12 -- --show > my.cu
Then: cargo run --bin lab-12 -- my.cu --check memcheck,racecheck
";

struct Options {
    file: Option<String>,
    /// The name of a ladder to show instead of a run.
    ladder: Option<String>,
    wanted: Wanted,
    step: Option<step::Wanted>,
    show: bool,
    is_real: bool,
    is_all: bool,
}

pub fn main(arguments: &[String]) -> ExitCode {
    if let Some(said) = commands::run(arguments) {
        return show(&said, "");
    }
    match arguments.split_first() {
        Some((first, rest)) if first == "launch" => return launch(rest),
        Some((first, rest)) if first == "train" => return train(rest),
        Some((first, rest)) if first == "compare" => return compare(rest),
        _ => {}
    }
    match options(arguments.iter().cloned()) {
        Ok(Some(options)) => run(&options),
        Ok(None) => print(HELP, 0),
        Err(trouble) => refuse_flag(&trouble),
    }
}

fn launch(arguments: &[String]) -> ExitCode {
    match launch::parse(arguments) {
        Ok(None) => print(launch::HELP, 0),
        Ok(Some(gpu)) => match launch::run(&gpu) {
            Ok((said, code)) => print(&said, code),
            Err(error) => refuse(&format!("error: {}\n", error.to_string().trim_end())),
        },
        Err(trouble) => refuse_flag(&trouble),
    }
}

fn train(arguments: &[String]) -> ExitCode {
    match train::parse(arguments.iter().cloned()) {
        Ok(train::Command::Help) => print(train::HELP, 0),
        Ok(train::Command::Show(options)) => match options.kernels() {
            Ok((_, text)) => print(&text, 0),
            Err(trouble) => refuse(&format!("error: {trouble}\n")),
        },
        Ok(train::Command::Train(options)) => match train::run(&options) {
            Ok((said, code)) => print(&said, code),
            Err(error) => refuse(&format!("error: {}\n", error.to_string().trim_end())),
        },
        Err(trouble) => refuse_flag(&trouble),
    }
}

fn compare(arguments: &[String]) -> ExitCode {
    match compare::parse(arguments) {
        Ok(None) => print(compare::HELP, 0),
        Ok(Some(options)) => show(&compare::run(&options), ""),
        Err(trouble) => refuse_flag(&trouble),
    }
}

fn refuse_flag(trouble: &str) -> ExitCode {
    refuse(&format!("error: {trouble}\n\nFor more information, try '--help'.\n"))
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

/// Reports an error. A closed stderr is ignored, since the exit code still reports the error.
fn refuse(text: &str) -> ExitCode {
    let _ = std::io::stderr().write_all(text.as_bytes());
    ExitCode::from(2)
}

/// Parses the options. Returns `None` if help is requested.
fn options(arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let mut options = Options {
        file: None,
        ladder: None,
        wanted: Wanted::default(),
        step: None,
        show: false,
        is_real: false,
        is_all: false,
    };
    let mut arguments = arguments;
    let (mut is_checked, mut is_ladder, mut has_card) = (false, false, false);
    let mut warp = None;
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
            "--step" => options.step = Some(step::FIRST),
            "--block" | "--warp" | "--launch" => {
                step::set(warp.get_or_insert(step::FIRST), &name[2..], &value()?)?;
            }
            "--registers" => options.wanted.registers = Some(registers(&value()?)?),
            "--gpu" => {
                let text = value()?;
                let wrong = |why| format!("invalid value '{}' for '--gpu <GPU>': {why}", text.escape_debug());
                options.is_real = text == "real";
                options.is_all = text == "all";
                if !options.is_real && !options.is_all {
                    options.wanted.card = card::parse(&text).map_err(wrong)?;
                    has_card = text != "auto" && text != "sim";
                }
            }
            "--format" => options.wanted.json = is_json(&value()?)?,
            flag if flag.starts_with('-') => return Err(format!("unknown flag `{flag}`")),
            "ladder" if options.file.is_none() && !is_ladder => is_ladder = true,
            _ if is_ladder && options.ladder.is_none() => options.ladder = Some(argument),
            _ if is_ladder => return Err(format!("`{argument}`: one ladder at a time")),
            _ if options.file.is_some() => return Err(format!("`{argument}`: one file at a time")),
            _ => options.file = Some(argument),
        }
    }
    if is_ladder && options.ladder.is_none() {
        let names = LADDERS.map(|ladder| ladder.name).join(" or ");
        return Err(format!("`ladder` needs a name: {names}"));
    }
    if is_ladder
        && (is_checked
            || options.show
            || options.is_real
            || options.wanted.counters
            || options.step.is_some())
    {
        return Err("`ladder` takes no flags but `--gpu` and `--format`".to_owned());
    }
    if options.is_all && !is_ladder {
        return Err("`--gpu all` is for `ladder`".to_owned());
    }
    if options.is_real
        && (is_checked || options.wanted.counters || options.wanted.json || options.step.is_some())
    {
        return Err("`--gpu real` makes no checks and counts nothing: NVIDIA's compute-sanitizer and ncu do"
            .to_owned());
    }
    if has_card && options.step.is_some() {
        return Err("`--step` shows one warp, which is the same on every card: leave out `--gpu`".to_owned());
    }
    if is_checked && options.wanted.counters {
        return Err("`--check` and `--counters` are two runs: checks would be counted".to_owned());
    }
    if options.wanted.registers.is_some() && !options.wanted.counters {
        return Err("`--registers` is for the occupancy that `--counters` shows".to_owned());
    }
    match (&mut options.step, warp) {
        (None, Some(_)) => return Err("`--block`, `--warp` and `--launch` belong to `--step`".to_owned()),
        (Some(_), _) if is_checked || options.wanted.counters => {
            return Err("`--step` shows one warp: leave out `--check` and `--counters`".to_owned());
        }
        (step, Some(_)) => *step = warp,
        _ => {}
    }
    Ok(Some(options))
}

/// Parses a register count. A thread has at most 255 registers.
fn registers(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=255).contains(number));
    number.ok_or_else(|| format!("`--registers {text}`: a thread takes 1 to 255 registers"))
}

fn run(options: &Options) -> ExitCode {
    if let Some(name) = &options.ladder {
        let cards = if options.is_all { &ALL[..] } else { &[options.wanted.card] };
        return show(&crate::ladder(name, cards, options.wanted.json), "");
    }
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
    let said = match options.step {
        Some(warp) => step::step(&name, &text, &includes, warp, options.wanted.json),
        None if options.is_real => real::run(&name, &text, &includes),
        None => crate::run(&name, &text, &includes, options.wanted),
    };
    let is_first = options.file.is_none() && options.step.is_none() && !options.wanted.json;
    show(&said, if is_first { NEXT } else { "" })
}

fn show(said: &Response, next: &str) -> ExitCode {
    match said.errors.is_empty() {
        true => print(&format!("{}{next}", said.output), said.code),
        false => refuse(&said.errors),
    }
}
