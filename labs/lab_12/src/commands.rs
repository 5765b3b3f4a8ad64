use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::cases::{self, Case};
use crate::judge::Judgement;
use crate::puzzles::{self, Includes, Puzzle};
use crate::{Response, is_json, verdict};

/// Runs a subcommand. Returns `None` if the first argument is not one.
pub fn run(arguments: &[String]) -> Option<Response> {
    let (name, rest) = arguments.split_first()?;
    let result = match name.as_str() {
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
                return Err(format!("unknown flag `{flag}`: expected --show or --format"));
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
        [name] => begin(puzzles::find(name)?),
        [name, file] => {
            let puzzle = puzzles::find(name)?;
            if options.show {
                return Ok(shown(puzzle.whole(&read(file)?)));
            }
            judged(file, (&puzzle.heading(), ""), options, &|file, text, includes| {
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
        [name] => Ok(presented(cases::find(name)?, options)),
        [name, file] => {
            let case = cases::find(name)?;
            let about = (&*case.heading(), case.explanation);
            judged(file, about, options, &|file, text, includes| case.judge(file, text, includes))
        }
        _ => Err("a case takes one file".to_owned()),
    }
}

fn judged(
    file: &str,
    (heading, explanation): (&str, &str),
    options: &Options,
    judge: &dyn Fn(&str, &str, Includes) -> Judgement,
) -> Result<Response, String> {
    let text = read(file)?;
    let folder = Path::new(file).parent().map(Path::to_path_buf).unwrap_or_default();
    let name = puzzles::file_name(file);
    let judgement = judge(&name, &text, &|header| fs::read_to_string(folder.join(header)).ok());
    Ok(verdict::said(&judgement, heading, &name, explanation, options.json))
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
    format!("The puzzles:\n{lines}\nTo begin: cargo run --bin lab-12 -- puzzle 01\n")
}

fn list_of_cases() -> String {
    let lines = cases::ALL.iter().map(|case| format!("  {}\n", case.name));
    let lines: String = lines.collect();
    format!("The cases:\n{lines}\nTo begin: cargo run --bin lab-12 -- case {}\n", cases::ALL[0].name)
}

/// Writes the puzzle's starting file, unless it exists.
fn begin(puzzle: &Puzzle) -> Result<Response, String> {
    let number = puzzle.number();
    let file = format!("puzzle-{number}.cu");
    let next = format!("Edit it, then: cargo run --bin lab-12 -- puzzle {number} {file}\n");
    let written =
        fs::File::create_new(&file).and_then(|mut created| created.write_all(puzzle.start.as_bytes()));
    match written {
        Ok(()) => Ok(shown(format!("{}\nWritten to {file}. {next}", puzzle.start))),
        Err(trouble) if trouble.kind() == ErrorKind::AlreadyExists => {
            Ok(shown(format!("{file} already exists and was not changed. {next}")))
        }
        Err(trouble) => Err(format!("the file {file} cannot be written: {trouble}")),
    }
}

fn presented(case: &Case, options: &Options) -> Response {
    let file = format!("{}.cu", case.name);
    let judgement = case.judge(&file, case.source, &|_| None);
    let report = verdict::said(&judgement, &case.heading(), &file, "", options.json).output;
    if options.json {
        return shown(report);
    }
    let command = format!("cargo run --bin lab-12 -- case {}", case.name);
    shown(format!(
        "{}\n{report}\nTo solve it: {command} --show > {file}\nEdit it, then: {command} {file}\n",
        case.source
    ))
}
