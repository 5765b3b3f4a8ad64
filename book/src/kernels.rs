//! Kernels on a page: programs in CUDA C++ from the folder of lab 12, which the page lets a reader edit, run and check.
//!
//! `kernels.js` puts an editor in place of the source. Without JavaScript, and in print, the page shows the source and
//! its recorded output.

use std::fs;

use crate::course::Course;
use crate::html::{escape, fence, figure};
use crate::mistake::choices;

/// The programs, each with a record of its output: a text file of the same name.
const EXAMPLES: &str = "labs/lab_12/examples";

/// The command of a record, without its file.
const COMMAND: &str = "cargo run --bin lab-12 -- ";

/// The checks of a command that names none, as in a terminal.
const CHECKS: &str = "memcheck,racecheck";

/// An editor with a program.
pub fn kernel(course: &Course, name: &str) -> Result<String, String> {
    let file = format!("{EXAMPLES}/{name}.cu");
    let source = course.read(&file).map_err(|_| {
        format!("no kernel `{name}` in {EXAMPLES}: say {}", choices_of(course, EXAMPLES, ".cu"))
    })?;
    let recorded = format!("{EXAMPLES}/{name}.txt");
    let text = course.read(&recorded);
    let text = text.map_err(|error| format!("{error}; KEEP_RECORDS=1 cargo test -p lab-12 writes it"))?;
    let (command, output) = record(&recorded, &file, &text)?;
    let checks = checks(&command);
    let attributes =
        format!(" id=\"kernel-{name}\" data-name=\"{name}.cu\" data-checks=\"{}\"", escape(checks));
    let printed = format!(
        "{}\n<p class=\"kernel-label\">It prints:</p>\n\n{}",
        fence("cpp", &source),
        fence("text", &output)
    );
    Ok(figure("kernel", &attributes, &printed, &format!("<code>{}</code>", escape(&command))))
}

/// The puzzles: a folder each, with the file to begin with.
const PUZZLES: &str = "labs/lab_12/puzzles";

/// A puzzle: its title and task, which the file to begin with has in its comment, and an editor with the rest.
pub fn puzzle(course: &Course, name: &str) -> Result<String, String> {
    let file = format!("{PUZZLES}/{name}/start.cu");
    let start = course
        .read(&file)
        .map_err(|_| format!("no puzzle `{name}`: say {}", choices_of(course, PUZZLES, "")))?;
    let (title, task, code) = parts(&start)
        .ok_or_else(|| format!("{file}: its first lines are not `// Puzzle 05: …`, `//` and the task"))?;
    let number = &name[..name.find('-').unwrap_or(name.len())];
    let command = fence("sh", &format!("cargo run --bin lab-12 -- puzzle {number}"));
    let attributes = format!(" id=\"puzzle-{name}\" data-name=\"puzzle-{number}.cu\" data-puzzle=\"{name}\"");
    let printed = format!(
        "### Puzzle {number}: {title}\n\n{task}\n<p class=\"puzzle-state\"></p>\n\n{}",
        fence("cpp", code)
    );
    Ok(format!("{}{}", figure("kernel puzzle", &attributes, &printed, "Or do it in your editor:"), command))
}

/// The title, the task as HTML, and the code of a file to begin with.
fn parts(start: &str) -> Option<(&str, String, &str)> {
    let (first, rest) = start.split_once('\n')?;
    let (_, title) = first.strip_prefix("// Puzzle ")?.split_once(": ")?;
    let end =
        rest.split_inclusive('\n').take_while(|line| line.starts_with("//")).map(str::len).sum::<usize>();
    let comment: Vec<&str> = rest[..end].lines().map(|line| line.trim_start_matches('/').trim()).collect();
    let paragraphs = comment.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
    let task: String = paragraphs.map(|lines| format!("<p>{}</p>\n", with_code(&lines.join(" ")))).collect();
    (!task.is_empty()).then(|| (title, task, rest[end..].trim_start()))
}

/// Text as HTML. Only `` `code` `` is Markdown in a comment: stars and underscores belong to C++.
fn with_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(at, part)| match at % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    });
    parts.collect()
}

/// The command in the first line of a record, and the output below it.
fn record(path: &str, file: &str, text: &str) -> Result<(String, String), String> {
    let (command, output) = text.split_once('\n').unwrap_or_default();
    let of_file =
        command.strip_prefix("$ ").filter(|command| command.starts_with(&format!("{COMMAND}{file}")));
    match of_file {
        Some(command) => Ok((command.to_owned(), output.to_owned())),
        None => Err(format!("{path}: its first line is not `$ {COMMAND}{file} …`")),
    }
}

fn checks(command: &str) -> &str {
    let mut words = command.split(' ').skip_while(|word| *word != "--check");
    words.nth(1).unwrap_or(CHECKS)
}

/// The names that a folder has for a directive: those of its files with this ending.
fn choices_of(course: &Course, folder: &str, ending: &str) -> String {
    let entries = fs::read_dir(course.root().join(folder)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned));
    let mut names: Vec<String> = names.filter(|name| !name.contains('.')).collect();
    names.sort();
    choices(names.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_puzzle_has_its_title_task_and_code() {
        let start = "// Puzzle 05: a < b\n//\n// Write `x[i]`\n// to *out*.\n//\n// Then stop.\n\n__global__ void k() {\n}\n";
        let task = "<p>Write <code>x[i]</code> to *out*.</p>\n<p>Then stop.</p>\n".to_owned();
        assert_eq!(parts(start), Some(("a < b", task, "__global__ void k() {\n}\n")));
        assert_eq!(parts("// Puzzle 05: a\n\nint x;\n"), None);
        assert_eq!(parts("int x;\n"), None);
    }

    #[test]
    fn a_record_names_its_command_and_checks() {
        let text = "$ cargo run --bin lab-12 -- a/b.cu --check all --format text\nout\n";
        let (command, output) = record("a/b.txt", "a/b.cu", text).unwrap();
        assert_eq!((checks(&command), output.as_str()), ("all", "out\n"));
        assert_eq!(checks("cargo run --bin lab-12 -- a/b.cu"), CHECKS);
        for wrong in ["", "out\n", "$ cargo run --bin lab-12 -- a/c.cu\nout\n"] {
            let error = record("a/b.txt", "a/b.cu", wrong).unwrap_err();
            assert_eq!(error, "a/b.txt: its first line is not `$ cargo run --bin lab-12 -- a/b.cu …`");
        }
    }
}
