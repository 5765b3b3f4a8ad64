//! Runs the chapter's programs on this computer's GPU and in the emulator. They must print the same.

use std::path::Path;
use std::process::Command;

use cuda_emulator::{Checks, Program};

use crate::gpu::simulated;
use crate::ladder::LADDERS;
use crate::real::Gpu;
use crate::{Response, card, puzzles};

pub const HELP: &str = "\
Runs the chapter's programs on this computer's NVIDIA GPU and in the emulator, and compares their output: examples,
corrected cases, the steps of the ladders, and a solution of each puzzle.

Usage: cargo run --bin lab-12 -- compare [NAME…] [--with COMPILER]

  NAME             part of a program's name, such as ladder/ or 05-shared [default: all programs]
  --with COMPILER  nvrtc, which compiles the kernels in this process, or nvcc on the PATH, which compiles whole programs
                   [default: nvrtc]
  -h, --help       prints this help

Exit code: 0 if all outputs are equal, 1 if one differs, 2 if there is no GPU or a flag is wrong.
";

macro_rules! files {
    ($($path:literal),* $(,)?) => { [$(($path, include_str!(concat!("../", $path)))),*] };
}

const PROGRAMS: [(&str, &str); 9] = files![
    "examples/own.cu",
    "examples/reverse.cu",
    "examples/vector_add.cu",
    "cases/fixed/missing_barrier.cu",
    "cases/fixed/nobody_writes.cu",
    "cases/fixed/off_by_one.cu",
    "cases/fixed/one_block_size.cu",
    "cases/fixed/right_by_luck.cu",
    "cases/fixed/right_by_luck_2.cu",
];

const SOLUTIONS: [(&str, &str); 14] = files![
    "puzzles/01-map/solution.cu",
    "puzzles/02-guard/solution.cu",
    "puzzles/03-two-dimensions/solution.cu",
    "puzzles/04-broadcast/solution.cu",
    "puzzles/05-shared/solution.cu",
    "puzzles/06-stencil/solution.cu",
    "puzzles/07-pooling/solution.cu",
    "puzzles/08-dot/solution.cu",
    "puzzles/09-reduction/solution.cu",
    "puzzles/10-scan/solution.cu",
    "puzzles/11-histogram/solution.cu",
    "puzzles/12-transpose/solution.cu",
    "puzzles/13-softmax/solution.cu",
    "puzzles/14-matmul-tile/solution.cu",
];

fn programs() -> Vec<(String, String)> {
    let steps = LADDERS.iter().flat_map(|ladder| {
        ladder.steps.iter().map(|step| (format!("ladder/{}", step.file), step.text.to_owned()))
    });
    let solutions = puzzles::ALL.iter().zip(SOLUTIONS);
    PROGRAMS
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .into_iter()
        .chain(steps)
        .chain(solutions.map(|(puzzle, (name, text))| (name.to_owned(), puzzle.whole(text))))
        .collect()
}

/// The programs whose names contain one of `names`, or all if it is empty.
fn chosen(names: &[&str]) -> Result<Vec<(String, String)>, String> {
    let mut programs = programs();
    if let Some(unknown) = names.iter().find(|part| !programs.iter().any(|(name, _)| name.contains(**part))) {
        let all: Vec<&str> = programs.iter().map(|(name, _)| name.as_str()).collect();
        return Err(format!("unknown program `{unknown}`: the programs are {}", all.join(", ")));
    }
    programs.retain(|(name, _)| names.is_empty() || names.iter().any(|part| name.contains(part)));
    Ok(programs)
}

/// A program's output and exit code, or the reason why it did not run.
type RunResult = Result<(String, i32), String>;

/// Compiles and runs the programs outside the emulator.
enum Compiler {
    Nvrtc(Box<Gpu>),
    Nvcc,
}

impl Compiler {
    fn named(name: &str) -> Result<Compiler, String> {
        match name {
            "nvrtc" => Gpu::open().map(|gpu| Compiler::Nvrtc(Box::new(gpu))),
            "nvcc" => match Command::new("nvcc").arg("--version").output() {
                Ok(_) => Ok(Compiler::Nvcc),
                Err(trouble) => Err(format!("`nvcc` does not start: {trouble}")),
            },
            other => Err(format!("`--with {other}`: the compilers are nvrtc and nvcc")),
        }
    }

    fn description(&self) -> String {
        match self {
            Compiler::Nvrtc(gpu) => gpu.name(),
            Compiler::Nvcc => "this GPU, compiled by nvcc,".to_owned(),
        }
    }

    fn run(&self, program: &Program, text: &str, folder: &Path) -> RunResult {
        match self {
            Compiler::Nvrtc(gpu) => {
                let mut output = String::new();
                let run = gpu.run(program, text, &mut |text| output.push_str(text))?;
                Ok((output + &run.output, run.exit_code()))
            }
            Compiler::Nvcc => with_nvcc(text, folder),
        }
    }
}

/// Compiles a program as the chapter does, without fused products and sums, and runs it.
fn with_nvcc(text: &str, folder: &Path) -> RunResult {
    let (source, program) = (folder.join("program.cu"), folder.join("program"));
    std::fs::write(&source, text).map_err(|trouble| format!("{}: {trouble}", source.display()))?;
    let output = |command: &mut Command| command.output().map_err(|trouble| trouble.to_string());
    let flags = ["-arch=native", "--fmad=false", "-o"];
    let compiled = output(Command::new("nvcc").args(flags).arg(&program).arg(&source))?;
    if !compiled.status.success() {
        let errors = String::from_utf8_lossy(&compiled.stderr);
        return Err(format!("nvcc: {}", errors.lines().next().unwrap_or("it failed without a message")));
    }
    let ran = output(&mut Command::new(&program))?;
    Ok((String::from_utf8_lossy(&ran.stdout).into_owned(), ran.status.code().unwrap_or(-1)))
}

fn emulated(program: &Program) -> RunResult {
    let run = simulated::run(program, program.machine(Checks::MEMORY), card::DEFAULT, &|_| None);
    let run = run.ok_or("the program has no `main`")?;
    Ok((run.output.clone(), run.exit_code()))
}

fn difference(emulated: &(String, i32), real: &(String, i32)) -> Option<String> {
    let lines = |(output, code): &(String, i32)| -> Vec<String> {
        output.lines().map(str::to_owned).chain([format!("exit code {code}")]).collect()
    };
    let (emulated, real) = (lines(emulated), lines(real));
    let at = (0..emulated.len().max(real.len())).find(|&at| emulated.get(at) != real.get(at))?;
    let line = |lines: &[String]| lines.get(at).map_or("nothing".to_owned(), |line| format!("`{line}`"));
    Some(format!("{} on the GPU, {} in the emulator", line(&real), line(&emulated)))
}

pub struct Options<'a> {
    compiler: &'a str,
    names: Vec<&'a str>,
}

/// Parses the arguments after `compare`. Returns `None` if help is requested.
pub fn parse(arguments: &[String]) -> Result<Option<Options<'_>>, String> {
    let mut options = Options { compiler: "nvrtc", names: Vec::new() };
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        match argument {
            "-h" | "--help" => return Ok(None),
            "--with" => options.compiler = arguments.next().ok_or("`--with` needs a value: nvrtc or nvcc")?,
            _ if argument.starts_with("--with=") => options.compiler = &argument["--with=".len()..],
            flag if flag.starts_with('-') => {
                return Err(format!("unknown flag `{flag}`: expected --with nvrtc|nvcc"));
            }
            name => options.names.push(name),
        }
    }
    Ok(Some(options))
}

pub fn run(options: &Options) -> Response {
    match compared(options) {
        Ok((output, code)) => Response { output, errors: String::new(), code },
        Err(trouble) => {
            Response { output: String::new(), errors: format!("error: compare: {trouble}\n"), code: 2 }
        }
    }
}

fn compared(options: &Options) -> Result<(String, u8), String> {
    let programs = chosen(&options.names)?;
    let compiler = Compiler::named(options.compiler)?;
    let folder = std::env::temp_dir().join(format!("lab-12-compare-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|trouble| format!("{}: {trouble}", folder.display()))?;
    let (mut same, mut output) = (0, String::new());
    for (name, text) in &programs {
        let compiled = Program::checked(name, text, &|_| None).map_err(|rejected| rejected.text())?;
        let result =
            emulated(&compiled).and_then(|emulated| Ok((compiler.run(&compiled, text, &folder)?, emulated)));
        let line = match result.map(|(real, emulated)| difference(&emulated, &real)) {
            Ok(None) => {
                same += 1;
                format!("same      {name}\n")
            }
            Ok(Some(difference)) => format!("DIFFERS   {name}: {difference}\n"),
            Err(reason) => format!("not run   {name}: {}\n", reason.lines().next().unwrap_or_default()),
        };
        output += &line;
    }
    let _ = std::fs::remove_dir_all(&folder);
    let all = programs.len();
    output += &format!(
        "{same} of {all} programs print the same on {} as in the emulator.\n",
        compiler.description()
    );
    Ok((output, u8::from(same < all)))
}
