//! Finds the source of a built page's link in the chapters.

use std::path::Path;

use crate::links::BadLink;
use crate::markdown;
use crate::mistake::line_of;

/// Formats a bad link as a line with its place in the chapters folder. For a directive's link, the place is the whole
/// file; for one outside the chapters, the built page.
pub fn line(chapters: &Path, bad: &BadLink) -> String {
    let BadLink { page, link, what } = bad;
    let file = page.strip_suffix(".html").map(|page| format!("{page}.md")).unwrap_or_default();
    let Ok(text) = std::fs::read_to_string(chapters.join(&file)) else { return format!("{page}: {what}") };
    // Links lead to `.md` in the chapters, and to `.html` in the built pages.
    let written = markdown::links(&text).into_iter().find(|(_, to)| to.replace(".md", ".html") == *link);
    match written {
        Some((byte, _)) => format!("book/chapters/{file}:{}: {what}", line_of(&text, byte)),
        None => format!("book/chapters/{file}: {what}"),
    }
}
