//! Kernels on a page: programs in CUDA C++ from the folder of lab 12, which a reader can edit, run and check.
//!
//! `kernels.js` replaces the source with an editor. Without JavaScript, and in print, the page shows the source and its
//! recorded output.

use std::fs;

use crate::course::Course;
use crate::html::{escape, fence, figure};
use crate::mistake::choices;

/// The example programs. `NAME.txt` has the output of `NAME.cu`.
const EXAMPLES: &str = "labs/lab_12/examples";

const COMMAND: &str = "cargo run --bin lab-12 -- ";

/// The checks of `lab-12` without `--check`.
const CHECKS: &str = "memcheck,racecheck";

/// An example program in an editor, with its recorded output.
pub fn kernel(course: &Course, name: &str) -> Result<String, String> {
    let file = format!("{EXAMPLES}/{name}.cu");
    let source = course.read(&file).map_err(|_| {
        format!("no kernel `{name}` in {EXAMPLES}: write {}", choices_of(course, EXAMPLES, ".cu"))
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

/// The puzzles: a folder for each, with the starter code in `start.cu`.
const PUZZLES: &str = "labs/lab_12/puzzles";

/// A puzzle: the task from the first comment, and an editor with the rest of the file.
pub fn puzzle(course: &Course, name: &str) -> Result<String, String> {
    let file = format!("{PUZZLES}/{name}/start.cu");
    let start = course
        .read(&file)
        .map_err(|_| format!("no puzzle `{name}`: write {}", choices_of(course, PUZZLES, "")))?;
    let number = &name[..name.find('-').unwrap_or(name.len())];
    let attributes = format!(" id=\"puzzle-{name}\" data-name=\"puzzle-{number}.cu\" data-puzzle=\"{name}\"");
    puzzle_html(&start, &attributes, &format!("puzzle {number}"))
        .ok_or_else(|| format!("{file}: its first lines are not `// Puzzle 05: …`, `//` and the task"))
}

/// The detective cases: programs with a planted bug.
const CASES: &str = "labs/lab_12/cases";

pub fn case(course: &Course, name: &str) -> Result<String, String> {
    let file = format!("{CASES}/{name}.cu");
    let start = course
        .read(&file)
        .map_err(|_| format!("no case `{name}`: write {}", choices_of(course, CASES, ".cu")))?;
    let attributes = format!(" id=\"case-{name}\" data-name=\"{name}.cu\" data-case=\"{name}\"");
    puzzle_html(&start, &attributes, &format!("case {name}"))
        .ok_or_else(|| format!("{file}: its first lines are not `// Case: …`, `//` and the story"))
}

/// The task from a file's first comment, and an editor with the rest, which the page judges.
fn puzzle_html(start: &str, attributes: &str, command: &str) -> Option<String> {
    let (title, task, code) = split_start(start)?;
    let printed = format!(
        "### {}\n\n{task}\n<p class=\"puzzle-state\"></p>\n\n{}",
        title.replace('_', " "),
        fence("cpp", code)
    );
    let figure = figure("kernel puzzle", attributes, &printed, "Or do it in your editor:");
    Some(format!("{figure}{}", fence("sh", &format!("{COMMAND}{command}"))))
}

/// The ladders: successive optimizations of one kernel. Each has a folder of programs, and the lab's recorded tables.
const LADDERS: &str = "labs/lab_12/ladder";

/// A ladder: its table on one card, and its times on every card, folded.
pub fn ladder(course: &Course, name: &str) -> Result<String, String> {
    steps(course, name)?;
    let recorded = |file: &str, command: &str| {
        let file = format!("{LADDERS}/{file}.txt");
        let text = course.read(&file)?;
        let command = format!("{COMMAND}ladder {command}");
        let table = text.strip_prefix(&format!("$ {command}\n")).and_then(table);
        let table = table.ok_or_else(|| format!("{file}: it is not `$ {command}` and a table"))?;
        Ok::<_, String>((table, format!("<code>{command}</code>")))
    };
    let (table, command) = recorded(name, name)?;
    let on_one = figure("ladder", &format!(" id=\"ladder-{name}\""), &table, &command);
    let (table, command) = recorded(&format!("{name}-cards"), &format!("{name} --gpu all"))?;
    let on_all = figure("ladder", "", &table, &command);
    Ok(format!("{on_one}<details><summary>On other cards</summary>\n\n{on_all}</details>\n\n"))
}

pub fn programs(course: &Course, name: &str) -> Result<String, String> {
    let mut page = String::new();
    for step in steps(course, name)? {
        let file = format!("{LADDERS}/{name}/{step}.cu");
        let source = course.read(&file)?;
        let attributes =
            format!(" id=\"kernel-{name}-{step}\" data-name=\"{step}.cu\" data-checks=\"{CHECKS}\"");
        page += &format!(
            "<details><summary><code>{name}/{step}.cu</code></summary>\n\n{}</details>\n\n",
            figure("kernel", &attributes, &fence("cpp", &source), &format!("<code>{COMMAND}{file}</code>"))
        );
    }
    Ok(page)
}

/// The names of a ladder's programs, without `.cu`, in the order of the steps.
fn steps(course: &Course, name: &str) -> Result<Vec<String>, String> {
    let steps = names_in(course, &format!("{LADDERS}/{name}"), ".cu");
    match steps.is_empty() {
        true => Err(format!("no ladder `{name}`: write {}", choices_of(course, LADDERS, ""))),
        false => Ok(steps),
    }
}

/// The lab's table of a ladder as HTML. The text has a title, an empty line, a heading, a row for each step with two or
/// more spaces between its cells, an empty line, and a remark. The last row has no counters.
fn table(text: &str) -> Option<String> {
    let [title, rows, remark] = text.trim().split("\n\n").collect::<Vec<_>>().try_into().ok()?;
    let cells = |line: &str| -> Vec<String> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(escape).collect()
    };
    let mut rows = rows.lines();
    let heading = cells(rows.next()?);
    let mut body = String::new();
    for row in rows.map(cells) {
        let (first, figures) = row.split_first()?;
        // A row without counters has a time, no limit, and a share.
        let figures = match figures {
            [time, share] => {
                let mut all = vec![String::new(); heading.len() - 1];
                let last = all.len() - 1;
                all[last] = share.clone();
                all[last - 2] = time.clone();
                all
            }
            figures => figures.to_vec(),
        };
        if figures.len() + 1 != heading.len() {
            return None;
        }
        let figures: String =
            figures.iter().map(|figure| format!("<td class=\"number\">{figure}</td>")).collect();
        body += &format!("<tr><th scope=\"row\">{first}</th>{figures}</tr>\n");
    }
    let heading: String = heading
        .iter()
        .map(|cell| format!("<th scope=\"col\">{}</th>", cell.replace('/', "/<wbr>")))
        .collect();
    Some(format!(
        "<div class=\"table-wrapper\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>\n<thead><tr>{heading}</tr></thead>\n\
         <tbody>\n{body}</tbody></table></div>\n\n<p>{}: {}</p>\n",
        escape(title),
        escape(title),
        escape(remark)
    ))
}

/// The title, the task as HTML, and the code of a starter file; `None` without a title or a task.
fn split_start(start: &str) -> Option<(&str, String, &str)> {
    let (first, rest) = start.split_once('\n')?;
    let title = first.strip_prefix("// ").filter(|title| title.contains(": "))?;
    let end =
        rest.split_inclusive('\n').take_while(|line| line.starts_with("//")).map(str::len).sum::<usize>();
    let comment: Vec<&str> = rest[..end].lines().map(|line| line.trim_start_matches('/').trim()).collect();
    let paragraphs = comment.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
    let task: String = paragraphs.map(|lines| format!("<p>{}</p>\n", with_code(&lines.join(" ")))).collect();
    (!task.is_empty()).then(|| (title, task, rest[end..].trim_start()))
}

/// A comment as HTML. Only backticks are markup: asterisks and underscores belong to C++.
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

/// The names in a folder that a directive accepts, as a sentence.
fn choices_of(course: &Course, folder: &str, ending: &str) -> String {
    choices(names_in(course, folder, ending).iter().map(String::as_str))
}

fn names_in(course: &Course, folder: &str, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(course.root().join(folder)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned));
    let mut names: Vec<String> = names.filter(|name| !name.contains('.')).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_puzzle_has_its_title_task_and_code() {
        let start = "// Puzzle 05: a < b\n//\n// Write `x[i]`\n// to *out*.\n//\n// Then stop.\n\n__global__ void k() {\n}\n";
        let task = "<p>Write <code>x[i]</code> to *out*.</p>\n<p>Then stop.</p>\n".to_owned();
        assert_eq!(split_start(start), Some(("Puzzle 05: a < b", task, "__global__ void k() {\n}\n")));
        assert_eq!(split_start("// Puzzle 05: a\n\nint x;\n"), None);
        assert_eq!(split_start("int x;\n"), None);
    }

    #[test]
    fn a_ladder_has_a_row_for_each_step() {
        let text = "t: a sum\n\nstep  conflicts  modelled µs  bound by  % of peak\n1. a < b        3          2.5  L2 cache        4.0\nlast                     2.0                  9.0\n\nA remark.\n";
        let html = table(text).unwrap();
        assert!(
            html.contains(
                "<th scope=\"row\">1. a &lt; b</th><td class=\"number\">3</td><td class=\"number\">2.5</td>"
            ),
            "{html}"
        );
        let last = "<th scope=\"row\">last</th><td class=\"number\"></td><td class=\"number\">2.0</td><td class=\"number\"></td><td class=\"number\">9.0</td>";
        assert!(html.contains(last) && html.contains("t: a sum: A remark."), "{html}");
        assert_eq!(table("no table"), None);
        assert_eq!(table("t\n\na  b  c\n1  2\n\nr"), None);
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
