//! The directives for the lab of chapter 12. It is not part of the package `labs`, because it compiles CUDA C++ and has
//! its own flags.

use std::fs;

use questions::recorded;

use crate::anchor::{self, PAGE_WIDTH};
use crate::course::Course;
use crate::document::{Page, up};
use crate::html::{captioned, fence};
use crate::lab_code;
use crate::mistake::Wrong;
use crate::plan::Plan;
use crate::python;

/// The page with the lab's source, relative to the chapters folder.
const SOURCE_PAGE: &str = "labs/lab-12.md";

const SOURCES: &str = "labs/lab_12/src";

const PYTHON: [&str; 2] = ["labs/lab_12/python/launch.py", "labs/lab_12/python/activation.py"];

/// The commands of the chapter with descriptions. A test of the lab runs them.
const COMMANDS: &str = "labs/lab_12/commands.txt";

pub fn is_lab_12(lab: &str) -> bool {
    lab == recorded::CHAPTER
}

/// `{{#lab-run 12}}`
pub fn run_it(course: &Course, page: &Page) -> Result<String, String> {
    let commands = course.read(COMMANDS)?;
    let split = |line: &str| {
        line.split_once("  # ").map(|(command, what)| (command.trim().to_owned(), what.to_owned()))
    };
    let commands: Option<Vec<(String, String)>> = commands.lines().map(split).collect();
    let commands =
        commands.ok_or_else(|| format!("a line of {COMMANDS} is not like `command  # what it does`"))?;
    let Some(((first, _), others)) = commands.split_first() else {
        return Err(format!("{COMMANDS} is empty"));
    };
    let width = others.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    let lines: Vec<String> =
        others.iter().map(|(command, what)| format!("{command:<width$}  # {what}")).collect();
    if let Some(wide) = lines.iter().find(|line| line.len() > PAGE_WIDTH) {
        return Err(format!("{COMMANDS}: `{wide}` is wider than a page"));
    }
    Ok(format!(
        "## Run it\n\nThe lab of this chapter is [`lab-{}`]({}{SOURCE_PAGE}):\n\n{}\n\
         <details>\n<summary>Other ways to run it</summary>\n\n{}\n</details>\n\n",
        recorded::CHAPTER,
        up(page.path),
        fence("sh", first),
        fence("sh", &lines.join("\n"))
    ))
}

/// `{{#lab-code 12 gradcheck}}`: an anchored part of the lab, next to the PyTorch program's.
pub fn code(course: &Course, page: &Page, anchor: &str) -> Result<String, Wrong> {
    let sources = sources(course)?;
    let (path, line, code) = lab_code::anchor_of(&sources, anchor)?;
    let wide: Vec<_> = sources.iter().flat_map(|(file, text)| anchor::too_wide(file, text, anchor)).collect();
    if !wide.is_empty() {
        return Err(Wrong::Elsewhere(wide));
    }
    let link = up(page.path) + SOURCE_PAGE;
    let mut python = None;
    for program in PYTHON {
        python = python.or(python::part(course, program, anchor)?);
    }
    Ok(lab_code::beside(&link, (path, line, &code), python))
}

/// The paths and texts of the sources. `lib.rs` comes first, because readers start there.
fn sources(course: &Course) -> Result<Vec<(String, String)>, String> {
    let mut names: Vec<String> = fs::read_dir(course.root().join(SOURCES))
        .and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned())).collect()
        })
        .map_err(|error| format!("{SOURCES} cannot be read: {error}"))?;
    names.retain(|name| name.ends_with(".rs"));
    names.sort_by_key(|name| (name != "lib.rs", name.clone()));
    let read = |name: String| {
        let path = format!("{SOURCES}/{name}");
        course.read(&path).map(|text| (path, text))
    };
    names.into_iter().map(read).collect()
}

/// `{{#lab-source 12}}`
pub fn source(course: &Course, page: &Page) -> Result<String, Wrong> {
    let mut markdown = String::new();
    let plan = Plan::read(course)?;
    for chapter in plan.chapters().filter(|chapter| chapter.number() == recorded::CHAPTER) {
        if let Some(of_chapter) = chapter.page() {
            markdown += &format!(
                "This is the lab of [{} {}]({}{of_chapter}). It uses the emulator in `kernels/emulator`.\n\n",
                chapter.number(),
                chapter.title,
                up(page.path)
            );
        }
    }
    let file = |language: &str, path: &str, text: &str| {
        captioned("lab-code", &fence(language, &anchor::without_marks(text)), &format!("<code>{path}</code>"))
    };
    for (path, text) in sources(course)? {
        markdown += &file("rust", &path, &text);
    }
    markdown += "## In PyTorch\n\n";
    for path in PYTHON {
        markdown += &file("python", path, &course.read(path)?);
    }
    Ok(markdown)
}
