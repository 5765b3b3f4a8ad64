//! The preprocessor: runs in this process, or as a command for an external mdBook.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use labs::Listed;
use mdbook_preprocessor::book::Book;
use mdbook_preprocessor::errors::{Error, Result};
use mdbook_preprocessor::{Preprocessor, PreprocessorContext, parse_input};

use crate::checks;
use crate::course::Course;
use crate::error_pages;
use crate::guide;
use crate::links::files;
use crate::lint;
use crate::mistake::{Mistake, lines};
use crate::page::{Page, expand};
use crate::python;

pub struct ToDevice {
    course: Course,
}

impl ToDevice {
    pub fn new(course: Course) -> ToDevice {
        ToDevice { course }
    }
}

impl Preprocessor for ToDevice {
    /// Must match `[preprocessor.to-device]` in `book.toml`.
    fn name(&self) -> &str {
        "to-device"
    }

    fn supports_renderer(&self, renderer: &str) -> Result<bool> {
        Ok(renderer == "html")
    }

    fn run(&self, context: &PreprocessorContext, mut book: Book) -> Result<Book> {
        let mut mistakes = Vec::new();
        error_pages::add(&mut book);
        guide::add(&mut book, &self.course);
        // Not `context.root`, which may be relative to another working directory.
        let folder = self.course.book().join(&context.config.book.src);
        let from_root = |path: &str| {
            let file = folder.join(path);
            slashes(file.strip_prefix(self.course.root()).unwrap_or(&file))
        };
        let all: String = book.chapters().map(|chapter| chapter.content.as_str()).collect();
        let shown = |lab: &Listed| {
            ["lab-output", "figure"].iter().any(|name| all.contains(&format!("{{{{#{name} {}", lab.number())))
        };
        self.course.run_labs(shown);
        let mut in_summary = BTreeSet::from(["SUMMARY.md".to_owned()]);
        book.for_each_chapter_mut(|chapter| {
            let Some(path) = chapter.source_path.clone() else { return };
            let path = slashes(&path);
            in_summary.insert(path.clone());
            let file = error_pages::source(&path)
                .or_else(|| guide::source(&path))
                .unwrap_or_else(|| from_root(&path));
            let text = chapter.content.replace("\r\n", "\n");
            mistakes.extend(lint::mistakes(&file, &text));
            let page = Page { file: &file, path: &path, text: &text };
            let expanded = expand(&self.course, &page);
            mistakes.extend(checks::mistakes(&self.course, &page, expanded.as_deref().ok()));
            match expanded {
                Ok(expanded) => chapter.content = expanded,
                Err(found) => mistakes.extend(found),
            }
        });
        for path in files(&folder).map_err(Error::msg)?.into_keys() {
            if !path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/.-_".contains(&byte)) {
                let what =
                    "a link to this name would need `%`: keep to a to z, digits, `-`, `_` and `.`".to_owned();
                mistakes.push(Mistake { file: from_root(&path), line: 1, what });
            }
            // mdBook renders 404.md without an entry in SUMMARY.md.
            if path.ends_with(".md") && path != "404.md" && !in_summary.contains(&path) {
                let what = "no page is made of this file: name it in SUMMARY.md".to_owned();
                mistakes.push(Mistake { file: from_root(&path), line: 1, what });
            }
        }
        mistakes.extend(python::mistakes(&self.course, &all));
        if all.contains("{{#score}}") {
            mistakes.extend(checks::evidence(&self.course));
        }
        if mistakes.is_empty() {
            return Ok(book);
        }
        Err(Error::msg(lines(&mistakes).join("\n")))
    }
}

fn slashes(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

/// Implements mdBook's preprocessor protocol: reads the book from standard input and writes it to standard output.
/// mdBook starts the command in the folder of the book.
pub fn as_command(folder: PathBuf) -> Result<()> {
    let root = folder.parent().ok_or_else(|| Error::msg("started outside the folder of the book"))?;
    let asked = io::read_to_string(io::stdin())?;
    of_our_version(&asked)?;
    let (context, book) = parse_input(asked.as_bytes())?;
    let book = ToDevice::new(Course::new(root)).run(&context, book)?;
    serde_json::to_writer(io::stdout().lock(), &book)?;
    io::stdout().flush()?;
    Ok(())
}

/// Rejects other versions of mdBook, whose different format would fail with a missing field.
fn of_our_version(asked: &str) -> Result<()> {
    let asked: serde_json::Value = serde_json::from_str(asked)?;
    let version = asked[0]["mdbook_version"].as_str().unwrap_or("of no version");
    match version.starts_with("0.5.") {
        true => Ok(()),
        false => Err(Error::msg(format!(
            "this mdBook has version {version}, but the book needs 0.5; `cargo run --bin book -- build` includes its own"
        ))),
    }
}
