use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::cases;
use crate::judge::Judgement;
use crate::puzzles::{self, Includes};
use crate::{Response, is_json, verdict};

const COMMAND: &str = "cargo run --bin lab-12 -- ";

pub const HELP: &str = "\
Puzzles are kernels to write, and cases are programs with a mistake to find. A judge tests yours.

Usage: cargo run --bin lab-12 -- puzzle                  lists the puzzles; case lists the cases
       cargo run --bin lab-12 -- puzzle 01               writes puzzle-01.cu, unless it is there
       cargo run --bin lab-12 -- puzzle 01 puzzle-01.cu  judges it
       cargo run --bin lab-12 -- case off_by_one         writes off_by_one.cu, unless it is there
       cargo run --bin lab-12 -- case off_by_one off_by_one.cu

  --show           prints what would be written, and writes nothing; with a puzzle's FILE.cu, the whole program for nvcc
  --format FORMAT  text or json, for a judgement [default: text]
  -h, --help       prints this

Exit code: 0 if yours is right, 1 if it is not, 2 if it does not compile or a flag is wrong.
";

/// Runs a subcommand. Returns `None` if the first argument is not one.
pub fn run(arguments: &[String]) -> Option<Response> {
    let (name, rest) = arguments.split_first()?;
    let result = match name.as_str() {
        "puzzle" | "case" if rest.iter().any(|argument| argument == "-h" || argument == "--help") => {
            Ok(shown(HELP.to_owned()))
        }
        "puzzle" => options(rest).and_then(|options| puzzle(&options)),
        "case" => options(rest).and_then(|options| case(&options)),
        _ => return None,
    };
    Some(result.unwrap_or_else(|trouble| Response {
        output: String::new(),
        errors: format!("error: {trouble}\n"),
        code: 2,
    }))
}

struct Options<'a> {
    names: Vec<&'a str>,
    show: bool,
    json: bool,
}

fn options(arguments: &[String]) -> Result<Options<'_>, String> {
    let mut options = Options { names: Vec::new(), show: false, json: false };
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        match argument {
            "--show" => options.show = true,
            "--format" => options.json = is_json(arguments.next().ok_or("`--format` needs a value")?)?,
            _ if argument.starts_with("--format=") => options.json = is_json(&argument["--format=".len()..])?,
            flag if flag.starts_with('-') => {
                return Err(format!("unknown flag `{flag}`: expected --show, --format or --help"));
            }
            name => options.names.push(name),
        }
    }
    Ok(options)
}

fn shown(output: String) -> Response {
    Response { output, errors: String::new(), code: 0 }
}

fn puzzle(options: &Options) -> Result<Response, String> {
    match options.names[..] {
        [] => Ok(shown(list_of_puzzles())),
        [name] if options.show => Ok(shown(puzzles::find(name)?.start.to_owned())),
        [name] => {
            let puzzle = puzzles::find(name)?;
            let number = puzzle.number();
            begin(&format!("puzzle-{number}.cu"), puzzle.start, &format!("puzzle {number}"))
        }
        [name, file] => {
            let puzzle = puzzles::find(name)?;
            if options.show {
                return Ok(shown(puzzle.whole(&read(file)?)));
            }
            let next = puzzles::ALL.iter().skip_while(|other| other.name != puzzle.name).nth(1);
            let next = next.map(|next| format!("puzzle {}", next.number()));
            judged(file, (&puzzle.heading(), ""), next, options, &|file, text, includes| {
                puzzle.judge(file, text, includes)
            })
        }
        _ => Err("a puzzle takes one file".to_owned()),
    }
}

fn case(options: &Options) -> Result<Response, String> {
    match options.names[..] {
        [] => Ok(shown(list_of_cases())),
        [name] if options.show => Ok(shown(cases::find(name)?.source.to_owned())),
        [name] => {
            let case = cases::find(name)?;
            begin(&format!("{name}.cu"), case.source, &format!("case {name}"))
        }
        [name, file] => {
            let case = cases::find(name)?;
            let about = (&*case.heading(), case.explanation);
            let next = cases::ALL.iter().skip_while(|other| other.name != case.name).nth(1);
            let next = next.map(|next| format!("case {}", next.name));
            judged(file, about, next, options, &|file, text, includes| case.judge(file, text, includes))
        }
        _ => Err("a case takes one file".to_owned()),
    }
}

/// Judges a file of the reader's. `next` is the task after this one.
fn judged(
    file: &str,
    (heading, explanation): (&str, &str),
    next: Option<String>,
    options: &Options,
    judge: &dyn Fn(&str, &str, Includes) -> Judgement,
) -> Result<Response, String> {
    let text = read(file)?;
    let folder = Path::new(file).parent().map(Path::to_path_buf).unwrap_or_default();
    let name = puzzles::file_name(file);
    let judgement = judge(&name, &text, &|header| fs::read_to_string(folder.join(header)).ok());
    let mut said = verdict::said(&judgement, heading, &name, explanation, options.json);
    if judgement.is_right() && !options.json {
        said.output +=
            &next.map_or("That was the last one.\n".to_owned(), |next| format!("Next: {COMMAND}{next}\n"));
    }
    Ok(said)
}

fn read(file: &str) -> Result<String, String> {
    match fs::read(file) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(trouble) => Err(format!("the file {file} cannot be read: {trouble}")),
    }
}

fn list_of_puzzles() -> String {
    let lines = puzzles::ALL.iter().map(|puzzle| format!("  {}  {}\n", puzzle.number(), puzzle.title()));
    let lines: String = lines.collect();
    format!("The puzzles:\n{lines}\nTo begin: {COMMAND}puzzle 01\n")
}

fn list_of_cases() -> String {
    let lines = cases::ALL.iter().map(|case| format!("  {}\n", case.name));
    let lines: String = lines.collect();
    format!("The cases:\n{lines}\nTo begin: {COMMAND}case {}\n", cases::ALL[0].name)
}

/// Writes the file to begin with, unless there is one already. `task` is such as `puzzle 01`.
fn begin(file: &str, text: &str, task: &str) -> Result<Response, String> {
    let next = format!("Edit it, then: {COMMAND}{task} {file}\n");
    match fs::File::create_new(file).and_then(|mut created| created.write_all(text.as_bytes())) {
        Ok(()) => Ok(shown(format!("{text}\nWritten to {file}. {next}"))),
        Err(trouble) if trouble.kind() == ErrorKind::AlreadyExists => {
            Ok(shown(format!("{file} already exists and was not changed. {next}")))
        }
        Err(trouble) => Err(format!("the file {file} cannot be written: {trouble}")),
    }
}
