//! The PyTorch versions of the labs: `labs/python/lab_03.py` does the work of lab 03. Its parts between `# ANCHOR:
//! name` and `# ANCHOR_END: name` appear next to the Rust anchor of the same name. Files such as `lab_03_program.py`
//! are whole programs of the chapter.

use std::path::Path;

use labs::Listed;

use crate::anchor;
use crate::course::Course;
use crate::mistake::{Mistake, Wrong, choices};

/// Relative to the root of the checkout.
const FOLDER: &str = "labs/python";

/// A suffix of an anchor's name: the part runs only on a GPU, and no test runs it.
const NEEDS_A_GPU: &str = " (needs a GPU)";

pub struct Part {
    pub path: String,
    pub line: usize,
    pub code: String,
    pub needs_a_gpu: bool,
}

pub fn part(course: &Course, path: &str, name: &str) -> Result<Option<Part>, Wrong> {
    if !course.root().join(path).exists() {
        return Ok(None);
    }
    let text = course.read(path)?;
    let Some(mark) = anchor::names(&text).map(|(_, mark)| mark).find(|mark| named(mark) == name) else {
        return Ok(None);
    };
    let needs_a_gpu = mark.ends_with(NEEDS_A_GPU);
    let text = text.replace(NEEDS_A_GPU, "");
    let wide = anchor::too_wide(path, &text, name);
    if !wide.is_empty() {
        return Err(Wrong::Elsewhere(wide));
    }
    let (line, code) = anchor::part(&text, name).map_err(|what| format!("{path} {what}"))?;
    Ok(Some(Part { path: path.to_owned(), line, code, needs_a_gpu }))
}

/// The programs of a lab, each with its path and text. The lab's counterpart comes first.
pub fn programs(course: &Course, lab: &Listed) -> Result<Vec<(String, String)>, String> {
    let start = format!("lab_{}", lab.number());
    let of_lab = |name: &String| {
        let rest = name.strip_prefix(&start).unwrap_or_default();
        rest == ".py" || (rest.starts_with('_') && rest.ends_with(".py"))
    };
    let paths = names(course).into_iter().filter(of_lab).map(|name| format!("{FOLDER}/{name}"));
    paths.map(|path| course.read(&path).map(|text| (path, text))).collect()
}

/// Anchors without a chapter, and programs without a lab. `pages` is the text of all chapters.
pub fn mistakes(course: &Course, pages: &str) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for name in names(course).into_iter().filter(|name| name.ends_with(".py")) {
        let file = format!("{FOLDER}/{name}");
        let number = name.strip_prefix("lab_").and_then(|rest| rest.get(..2)).unwrap_or_default();
        if let Err(what) = course.lab(number) {
            let what = format!("{what} as in `lab_03.py` or `lab_03_program.py`");
            mistakes.push(Mistake { file, line: 1, what });
            continue;
        }
        let Ok(text) = course.read(&file) else { continue };
        let marks: Vec<(usize, &str)> = anchor::names(&text).collect();
        if file != of_lab(number) {
            mistakes.extend(marks.first().map(|(line, mark)| {
                let what = format!("a chapter shows anchors of lab_{number}.py only: remove `{mark}`");
                Mistake { file, line: *line, what }
            }));
            continue;
        }
        let shown = shown(pages, number);
        let without = |name: &&str| !marks.iter().any(|(_, mark)| named(mark) == *name);
        let free = choices(shown.iter().copied().filter(without));
        let unknown = marks.iter().filter(|(_, mark)| !shown.contains(&named(mark)));
        mistakes.extend(unknown.map(|(line, mark)| {
            let what = format!(
                "no chapter shows the Rust of an anchor `{}`. Anchors that one does, and that have no PyTorch: {free}",
                named(mark)
            );
            Mistake { file: file.clone(), line: *line, what }
        }));
    }
    mistakes
}

fn shown<'a>(pages: &'a str, number: &str) -> Vec<&'a str> {
    let start = format!("{{{{#lab-code {number} ");
    let lines = pages.lines().filter_map(|line| line.trim_end().strip_prefix(&start)?.strip_suffix("}}"));
    lines.collect()
}

/// `half_moved (needs a GPU)` → `half_moved`
fn named(mark: &str) -> &str {
    mark.strip_suffix(NEEDS_A_GPU).unwrap_or(mark)
}

pub fn of_lab(number: &str) -> String {
    format!("{FOLDER}/lab_{number}.py")
}

/// The sorted file names. A checkout may have none.
fn names(course: &Course) -> Vec<String> {
    let folder = std::fs::read_dir(course.root().join(Path::new(FOLDER)));
    let files = folder.into_iter().flatten().flatten();
    let mut names: Vec<String> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
