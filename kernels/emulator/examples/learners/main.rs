//! Runs whole CUDA programs in the emulator and as compiled by g++, and compares the output.
//!
//! ```text
//! cargo run --release -p cuda-emulator --example learners -- --count 117 a-folder another/program.cu
//! ```
//!
//! The arguments are files and folders; in a folder, each `.cu` file with a `main` and a kernel is a program. They run
//! in the order of the hashes of their texts, until as many count as `--count` says. Under g++, a header replaces CUDA,
//! and clocks stand still on both sides. A program is the same if it prints the same text and ends with the same exit
//! code. `CXX` selects another compiler.
//!
//! A program counts if
//!
//! - g++ compiles it with that header and the headers of its own repository: it needs no other library,
//! - it launches a kernel and ends with 0, without arguments,
//! - it reads no input, and leaves no files,
//! - it prints the same text both times that g++ runs it, each time within 5 s of the processor's time,
//! - the emulator reports no fault of the program that explains another output, and
//! - it needs no more memory than the emulator has.

mod gpp;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cuda_emulator::run::checks::Finding;
use cuda_emulator::{Checks, Outcome, Program, Run};

/// The limits of a run in the emulator. They are higher than a reader's, since programs for a GPU do much.
const MOST_INSTRUCTIONS: u64 = 4_000_000_000;
const MOST_TIME: Duration = Duration::from_secs(120);

/// The result for one program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Result {
    Same,
    /// Kernels print in another order, or their atomics find another order, which CUDA leaves open.
    OtherOrder,
    /// Numbers differ in their last digits: the functions of `<math.h>` round differently.
    LastDigits,
    /// The emulator reports a fault of the program.
    Fault(String),
    Rejected(String),
    TooLong,
    Differs(String),
    /// It asks for more memory than the emulator has.
    Memory,
    /// Under g++, it prints something else every time.
    Random,
    /// Under g++, it launches no kernel, or it fails.
    NoLaunch,
    Files,
    /// g++ cannot compile it, or takes too long for it.
    NotForGpp(String),
}

impl Result {
    fn name(&self) -> &'static str {
        match self {
            Result::Same => "same",
            Result::OtherOrder => "same, in another order",
            Result::LastDigits => "same, but for the last digits",
            Result::Fault(_) => "not counted: a fault of the program",
            Result::Rejected(_) => "rejected",
            Result::TooLong => "too long for the emulator",
            Result::Differs(_) => "DIFFERS",
            Result::Memory => "not counted: more memory than the emulator has",
            Result::Random => "not counted: random",
            Result::NoLaunch => "not counted: no launch, or it fails with g++",
            Result::Files => "not counted: input or files",
            Result::NotForGpp(_) => "not counted: g++ cannot",
        }
    }

    fn why(&self) -> &str {
        match self {
            Result::Fault(why) | Result::Rejected(why) | Result::Differs(why) | Result::NotForGpp(why) => why,
            _ => "",
        }
    }
}

fn main() -> ExitCode {
    let (mut paths, mut most) = (Vec::new(), usize::MAX);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--count" {
            let Some(number) = arguments.next().and_then(|number| number.parse().ok()) else {
                eprintln!("error: `--count` takes a number, as in `--count 117`");
                return ExitCode::from(2);
            };
            most = number;
        } else if let Err(trouble) = find(Path::new(&argument), true, &mut paths) {
            eprintln!("error: {argument}: {trouble}");
            return ExitCode::from(2);
        }
    }
    // The hash of a text is a fair order, and a text counts once.
    let mut programs = BTreeMap::new();
    for path in paths {
        match std::fs::read(&path) {
            Ok(text) => _ = programs.entry(hash(&text)).or_insert((path, text)),
            Err(trouble) => {
                eprintln!("error: {}: {trouble}", path.display());
                return ExitCode::from(2);
            }
        }
    }
    if programs.is_empty() {
        eprintln!("error: name files or folders with CUDA programs");
        return ExitCode::from(2);
    }
    let gpp = match gpp::Gpp::new() {
        Ok(gpp) => gpp,
        Err(trouble) => {
            eprintln!("error: the headers for g++: {trouble}");
            return ExitCode::from(2);
        }
    };
    let mut counts = BTreeMap::<&str, usize>::new();
    let (mut tried, mut counted) = (0, 0);
    for (file, text) in programs.values() {
        if counted == most {
            break;
        }
        let start = Instant::now();
        let (result, took) = compared(&gpp, file, &String::from_utf8_lossy(text));
        tried += 1;
        counted += usize::from(!result.name().starts_with("not counted"));
        *counts.entry(result.name()).or_default() += 1;
        println!(
            "{} | {} | {} | {:.1} s of {:.1} s",
            result.name(),
            file.display(),
            result.why(),
            took.as_secs_f64(),
            start.elapsed().as_secs_f64()
        );
    }
    println!("\n{tried} programs, of which {counted} count");
    for (name, count) in &counts {
        println!("{count:5} {name}");
    }
    ExitCode::from(u8::from(counts.contains_key("DIFFERS")))
}

/// Finds the programs in a folder. A file that the user names is one.
fn find(path: &Path, is_named: bool, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if path.is_dir() {
        let entries = std::fs::read_dir(path)?.flatten();
        return entries.map(|entry| entry.path()).try_for_each(|entry| find(&entry, false, found));
    }
    let is_program =
        || std::fs::read_to_string(path).is_ok_and(|text| has_main(&text) && text.contains("__global__"));
    if is_named || path.extension().is_some_and(|known| known == "cu") && is_program() {
        found.push(path.to_owned());
    }
    Ok(())
}

/// FNV-1a.
fn hash(text: &[u8]) -> u64 {
    text.iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

fn has_main(text: &str) -> bool {
    text.match_indices("main").any(|(at, _)| text[at + 4..].trim_start().starts_with('('))
}

/// Compares one program, and returns how long the emulator took.
fn compared(gpp: &gpp::Gpp, file: &Path, text: &str) -> (Result, Duration) {
    let folder = file.parent().unwrap_or(Path::new("."));
    let folders = include_folders(folder);
    let theirs = match gpp.run_twice(&folders, text) {
        Ok([first, _]) if !first.has_launched || first.code != 0 => {
            return (Result::NoLaunch, Duration::ZERO);
        }
        Ok([first, _]) if first.has_files => return (Result::Files, Duration::ZERO),
        Ok([first, second]) if first != second => return (Result::Random, Duration::ZERO),
        Ok([first, _]) => first,
        Err(trouble) => return (Result::NotForGpp(trouble), Duration::ZERO),
    };
    let includes =
        |name: &str| folders.iter().find_map(|folder| std::fs::read_to_string(folder.join(name)).ok());
    let name = file.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let began = Instant::now();
    let program = match Program::compile(&name, text, &includes) {
        Ok(program) => program,
        Err(errors) => return (Result::Rejected(first_line(&errors)), began.elapsed()),
    };
    let Some(ours) = program.run_limited(Checks::MEMORY, MOST_INSTRUCTIONS, MOST_TIME) else {
        return (Result::Rejected("there is no `main`".to_owned()), began.elapsed());
    };
    let took = began.elapsed();
    let mut result = judged(&ours, &theirs, text.contains("atomic"));
    // Other checks than that of memory find more faults, such as values that are read before they are written.
    if let Result::Differs(_) = result
        && let Some(found) = program
            .run(Checks { leaks: false, ..Checks::ALL })
            .and_then(|run| run.findings.all.first().cloned())
    {
        result = Result::Fault(found.title);
    }
    if let Result::Differs(_) = result
        && gpp.reads_uninitialised(&folders, text) == Ok(true)
    {
        result = Result::Fault("it reads an uninitialised variable".to_owned());
    }
    (result, took)
}

/// A program's folder, and the folders for headers beside it and beside the folders around it.
fn include_folders(folder: &Path) -> Vec<PathBuf> {
    let beside =
        folder.ancestors().take(3).flat_map(|above| ["include", "common"].map(|name| above.join(name)));
    std::iter::once(folder.to_owned()).chain(beside.filter(|folder| folder.is_dir())).collect()
}

fn first_line(errors: &str) -> String {
    errors.lines().next().unwrap_or_default().to_owned()
}

fn judged(ours: &Run, theirs: &gpp::Output, has_atomics: bool) -> Result {
    let is_stop = |finding: &Finding| finding.title.starts_with("Stopped after");
    if ours.findings.all.first().is_some_and(is_stop) {
        return Result::TooLong;
    }
    let code = match ours.outcome {
        Outcome::Exit(code) => code & 255,
        Outcome::Fault => -1,
    };
    if theirs.text == ours.output && theirs.code == code {
        return Result::Same;
    }
    if let Some(finding) = ours.findings.all.first() {
        let is_memory = finding.title.contains("cudaErrorMemoryAllocation");
        return if is_memory { Result::Memory } else { Result::Fault(finding.title.clone()) };
    }
    if ours.output.contains("out of memory") {
        return Result::Memory;
    }
    if theirs.code != code {
        return Result::Differs(format!("exit code {code}, and {} with g++", theirs.code));
    }
    let has_same_words = || {
        let sorted_words = |text: &str| sorted(text.split(|c: char| c == ',' || c.is_whitespace()));
        sorted_words(&theirs.text) == sorted_words(&ours.output)
    };
    if sorted(theirs.text.lines()) == sorted(ours.output.lines()) || has_atomics && has_same_words() {
        return Result::OtherOrder;
    }
    let other = ours.output.lines().zip(theirs.text.lines()).find(|(a, b)| !is_close(a, b));
    match other {
        None if ours.output.lines().count() == theirs.text.lines().count() => Result::LastDigits,
        None => Result::Differs("one prints more than the other".to_owned()),
        Some((a, b)) => Result::Differs(format!("{a:?}, and {b:?} with g++")),
    }
}

fn sorted<'a>(parts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut parts: Vec<String> = parts.map(str::to_owned).collect();
    parts.sort_unstable();
    parts
}

/// Whether two lines have the same words, and almost the same numbers.
fn is_close(a: &str, b: &str) -> bool {
    let split = |c: char| !(c.is_alphanumeric() || "+-.".contains(c));
    let (mut a, mut b) = (a.split(split), b.split(split));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => match (a.parse::<f64>(), b.parse::<f64>()) {
                // One more in the last digit that is printed is close, too.
                (Ok(x), Ok(y)) if (x - y).abs() <= (1e-4 * x.abs().max(y.abs())).max(1.01 * unit(a)) => {}
                _ => return false,
            },
            _ => return false,
        }
    }
}

/// The value of 1 in the last digit of a decimal; 0 for other numbers.
fn unit(number: &str) -> f64 {
    match number.split_once('.') {
        Some((_, digits)) if !number.contains('e') => 0.1f64.powi(digits.len() as i32),
        _ => 0.0,
    }
}
