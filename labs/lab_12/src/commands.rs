//! The subcommands of the terminal.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::puzzles::{self, Puzzle};
use crate::{Said, verdict};

/// Runs `puzzle [NAME [FILE]]`. Returns `None` if the first argument is no subcommand.
pub fn run(arguments: &[String]) -> Option<Said> {
    let (name, rest) = arguments.split_first()?;
    let result = match name.as_str() {
        "puzzle" => puzzle(rest),
        _ => return None,
    };
    Some(result.unwrap_or_else(|trouble| Said {
        output: String::new(),
        errors: format!("error: {trouble}\n"),
        code: 2,
    }))
}

fn said(output: String, is_right: bool) -> Said {
    Said { output, errors: String::new(), code: u8::from(!is_right) }
}

fn puzzle(arguments: &[String]) -> Result<Said, String> {
    let shows = arguments.iter().any(|argument| argument == "--show");
    let names: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|argument| *argument != "--show").collect();
    if let Some(flag) = names.iter().find(|name| name.starts_with('-')) {
        return Err(format!("there is no flag `{flag}` of a puzzle: there is --show"));
    }
    match names[..] {
        [] => Ok(said(list(), true)),
        [name] => begin(puzzles::find(name)?),
        [name, file] => {
            let puzzle = puzzles::find(name)?;
            let text = read(file)?;
            if shows {
                return Ok(said(puzzle.whole(&text), true));
            }
            let folder = Path::new(file).parent().map(Path::to_path_buf).unwrap_or_default();
            let shown = puzzles::file_name(file);
            let judgement =
                puzzle.judge(&shown, &text, &|header| fs::read_to_string(folder.join(header)).ok());
            let title = format!("Puzzle {}: {}", puzzle.number(), puzzle.title());
            Ok(said(verdict::text(&judgement, &title, &shown), judgement.is_right()))
        }
        _ => Err("a puzzle takes one file".to_owned()),
    }
}

fn read(file: &str) -> Result<String, String> {
    match fs::read(file) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(trouble) => Err(format!("the file {file} cannot be read: {trouble}")),
    }
}

fn list() -> String {
    let lines = puzzles::ALL.iter().map(|puzzle| format!("  {}  {}\n", puzzle.number(), puzzle.title()));
    format!("The puzzles:\n{}\nTo begin: cargo run --bin lab-12 -- puzzle 01\n", lines.collect::<String>())
}

/// Writes the file to begin with, unless there is one already.
fn begin(puzzle: &Puzzle) -> Result<Said, String> {
    let number = puzzle.number();
    let file = format!("puzzle-{number}.cu");
    let next = format!("Edit it, then: cargo run --bin lab-12 -- puzzle {number} {file}\n");
    match fs::File::create_new(&file) {
        Ok(mut created) => match created.write_all(puzzle.start.as_bytes()) {
            Ok(()) => Ok(said(format!("{}\nThis is now in {file}. {next}", puzzle.start), true)),
            Err(trouble) => Err(format!("the file {file} cannot be written: {trouble}")),
        },
        Err(trouble) if trouble.kind() == std::io::ErrorKind::AlreadyExists => {
            Ok(said(format!("{file} is there already, and stays as it is. {next}"), true))
        }
        Err(trouble) => Err(format!("the file {file} cannot be written: {trouble}")),
    }
}
