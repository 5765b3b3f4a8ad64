//! The lab of chapter 12 on its page. It is no lab of the package `labs`: it compiles CUDA C++, and has flags of its
//! own.

use std::fs;

use questions::recorded;

use crate::anchor::PAGE_WIDTH;
use crate::course::Course;
use crate::document::{Page, up};
use crate::html::{captioned, fence};
use crate::mistake::Wrong;
use crate::plan::Plan;

/// The page with its source, relative to the chapters folder.
const SOURCE_PAGE: &str = "labs/lab-12.md";

const SOURCES: &str = "labs/lab_12/src";

/// The commands of the chapter, each with what it does. A test of the lab runs them.
const COMMANDS: &str = "labs/lab_12/commands.txt";

pub fn is_meant(lab: &str) -> bool {
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

/// `{{#lab-source 12}}`
pub fn source(course: &Course, page: &Page) -> Result<String, Wrong> {
    let mut names: Vec<String> = fs::read_dir(course.root().join(SOURCES))
        .and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned())).collect()
        })
        .map_err(|error| format!("{SOURCES} cannot be read: {error}"))?;
    // The tour begins with `lib.rs`.
    names.sort_by_key(|name| (name != "lib.rs", name.clone()));
    let mut markdown = String::new();
    let plan = Plan::read(course)?;
    for chapter in plan.chapters().filter(|chapter| chapter.number() == recorded::CHAPTER) {
        if let Some(of_chapter) = chapter.page() {
            markdown += &format!(
                "This is the lab of [{} {}]({}{of_chapter}). It calls the emulator, `kernels/emulator`.\n\n",
                chapter.number(),
                chapter.title,
                up(page.path)
            );
        }
    }
    for name in names.iter().filter(|name| name.ends_with(".rs")) {
        let path = format!("{SOURCES}/{name}");
        let code = fence("rust", &course.read(&path)?);
        markdown += &captioned("lab-code", &code, &format!("<code>{path}</code>"));
    }
    Ok(markdown)
}
