//! The code of a lab: an anchored part next to its PyTorch version, or the whole source.

use crate::anchor;
use crate::course::Course;
use crate::document::{Page, up};
use crate::html::{captioned, fence};
use crate::labs::source_page;
use crate::mistake::Wrong;
use crate::plan::Plan;
use crate::python::{self, Part};

/// The part of a lab with this anchor. If PyTorch has an anchor of the same name, both appear as tabs: see `both.js`.
pub fn excerpt(course: &Course, page: &Page, lab: &str, anchor: &str) -> Result<String, Wrong> {
    let lab = course.lab(lab)?;
    let sources = course.sources(lab)?;
    let (path, line, code) = anchor_of(&sources, anchor)?;
    let wide: Vec<_> = sources.iter().flat_map(|(file, text)| anchor::too_wide(file, text, anchor)).collect();
    if !wide.is_empty() {
        return Err(Wrong::Elsewhere(wide));
    }
    let link = up(page.path) + &source_page(lab);
    let python = python::part(course, &python::of_lab(lab.number()), anchor)?;
    Ok(beside(&link, (path, line, &code), python))
}

/// Code in Rust, next to PyTorch's, if any. `link` leads to the page with the whole source.
pub(crate) fn beside(link: &str, (path, line, code): (&str, usize, &str), python: Option<Part>) -> String {
    let caption = format!("<a href=\"{link}\"><code>{path}</code></a>, line {line}");
    let rust = captioned("lab-code", &fence("rust", code), &caption);
    let Some(Part { path, line, code, needs_a_gpu }) = python else { return rust };
    let note = if needs_a_gpu { " <span class=\"needs-a-gpu\">needs a GPU</span>" } else { "" };
    let caption = format!("<a href=\"{link}#in-pytorch\"><code>{path}</code></a>, line {line}{note}");
    let python = captioned("lab-code", &fence("python", &code), &caption);
    let side = |id: &str, name: &str, figure: &str| {
        format!("<div class=\"side\" data-code=\"{id}\">\n<p class=\"language\">{name}</p>\n{figure}</div>\n")
    };
    format!(
        "<div class=\"both\">\n{}{}</div>\n\n",
        side("rust", "Rust", &rust),
        side("pytorch", "PyTorch", &python)
    )
}

pub fn full_source(course: &Course, page: &Page, lab: &str) -> Result<String, Wrong> {
    let lab = course.lab(lab)?;
    let file = |language: &str, (path, text): &(String, String)| {
        let code = fence(language, &anchor::without_marks(text));
        captioned("lab-code", &code, &format!("<code>{path}</code>"))
    };
    let plan = Plan::read(course)?;
    let chapter = plan.chapters().find(|chapter| chapter.number() == lab.number());
    // The only link back: these pages have no *Previous*.
    let back = chapter.and_then(|chapter| {
        let (number, title, of_chapter) = (chapter.number(), &chapter.title, chapter.page()?);
        Some(format!("This is the lab of [{number} {title}]({}{of_chapter}).\n\n", up(page.path)))
    });
    let rust: String = course.sources(lab)?.iter().map(|source| file("rust", source)).collect();
    let programs = python::programs(course, lab)?;
    let python: String = programs.iter().map(|program| file("python", program)).collect();
    let heading = if programs.is_empty() { "" } else { "## In PyTorch\n\n" };
    Ok(back.unwrap_or_default() + &rust + heading + &python)
}

/// The file of a lab that has an anchor, with the number of its first line, and its lines.
pub fn anchor_of<'a>(
    sources: &'a [(String, String)],
    anchor: &str,
) -> Result<(&'a str, usize, String), String> {
    let parts = sources.iter().map(|(path, text)| (path, anchor::part(text, anchor)));
    let found: Vec<_> =
        parts.filter_map(|(path, part)| part.ok().map(|(line, code)| (path.as_str(), line, code))).collect();
    if let [part] = &found[..] {
        return Ok(part.clone());
    }
    // The error covers all files together.
    let (paths, texts): (Vec<&str>, Vec<&str>) =
        sources.iter().map(|(path, text)| (path.as_str(), text.as_str())).unzip();
    match anchor::part(&texts.join("\n"), anchor) {
        Ok(_) => Err(format!("{} lacks a mark of the anchor `{anchor}`", paths.join(" | "))),
        Err(what) => Err(format!("{} {what}", paths.join(" | "))),
    }
}
