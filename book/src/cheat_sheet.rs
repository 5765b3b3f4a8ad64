//! The cheat sheet: the maps of all chapters with the action of each row, on one printable page.

use std::collections::BTreeSet;
use std::mem;

use crate::course::Course;
use crate::html::inline;
use crate::inline::with_figures;
use crate::map::{self, Row};
use crate::mistake::{Mistake, Wrong};
use crate::plan::Plan;

/// A table for each chapter, without rows of earlier chapters. `up` is the path to the chapters folder.
pub fn markdown(course: &Course, up: &str) -> Result<String, Wrong> {
    let mut sheet = String::new();
    let mut shown = BTreeSet::new();
    let plan = Plan::read(course)?;
    let pages = plan.chapters().flat_map(|chapter| chapter.pages().map(move |page| (chapter.number(), page)));
    for (number, (page, title)) in pages {
        let file = format!("book/chapters/{page}");
        let table = table(course, &file, &mut shown)
            .map_err(|(line, what)| Wrong::Elsewhere(vec![Mistake { file, line, what }]))?;
        let page = page.replace(".md", ".html");
        sheet += &format!(
            "## {number} {title}\n\n<div class=\"table-wrapper cheat\">\n<table>\n<thead><tr><th>action</th><th>PyTorch</th><th>here</th></tr></thead>\n\
             {table}</table>\n<p class=\"to-chapter\"><a href=\"{up}{page}#from-pytorch-to-rust\">In the chapter</a></p>\n</div>\n\n"
        );
    }
    Ok(format!("<div class=\"cheat-sheet\">\n\n{sheet}</div>\n\n"))
}

/// The rows of a chapter, grouped by action. The error is a line number and a message.
fn table(course: &Course, file: &str, shown: &mut BTreeSet<String>) -> Result<String, (usize, String)> {
    let text = course.read(file).map_err(|what| (1, what))?;
    let from = text.lines().position(|line| line == "{{#map}}").map(|line| line + 1);
    let from = from.ok_or((1, "the chapter has no `{{#map}}`".to_owned()))?;
    let lines = text.lines().skip(from).take_while(|line| *line != "{{/map}}");
    let mut expanded = Vec::new();
    for (index, line) in lines.enumerate() {
        expanded.push(with_figures(course, line).map_err(|what| (from + 1 + index, what))?);
    }
    let mut table = String::new();
    // The action of the next rows, until it is printed.
    let (mut action, mut unsaid) = (None, String::new());
    for row in map::rows(&expanded).map_err(|(index, what)| (from + 1 + index, what))? {
        let line = from + 1 + row.index;
        if let Some(new) = row.action {
            unsaid = inline(&new).map_err(|what| (line, what))?;
            action = Some(new);
        }
        if action.is_none() {
            return Err((line, "the first row of a map says what it does: `//: Move a tensor`".to_owned()));
        }
        let Row { pytorch, rust, note, .. } = row;
        if shown.insert(pytorch.clone()) {
            let note = if note.is_empty() { note } else { format!("<p class=\"note\">{note}</p>") };
            let action = mem::take(&mut unsaid);
            table += &format!("<tr><td>{action}</td><td>{pytorch}</td><td>{rust}{note}</td></tr>\n");
        }
    }
    Ok(format!("<tbody>\n{table}</tbody>\n"))
}
