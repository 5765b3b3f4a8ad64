//! Errors in the source text of a page, independent of its directives.

use mdbook_markdown::pulldown_cmark::{Event, HeadingLevel, Tag};
use mdbook_markdown::{MarkdownOptions, new_cmark_parser};

use crate::mistake::{Mistake, line_of};
use crate::page::closing;
use crate::{fences, markdown};

pub fn mistakes(file: &str, text: &str) -> Vec<Mistake> {
    let in_markdown = markdown::mistakes(text).into_iter().map(|(byte, what)| (line_of(text, byte), what));
    let mut found: Vec<(usize, String)> = in_markdown.collect();
    found.extend(fences::mistakes(text));
    found.extend(titles(text));
    found.extend(directives_in_code(text));
    found.extend(braces(text));
    found.sort_by_key(|(line, _)| *line);
    found.into_iter().map(|(line, what)| Mistake { file: file.to_owned(), line, what }).collect()
}

/// Checks that a page has exactly one title, at its top, for the browser tab, the sidebar and screen readers.
fn titles(text: &str) -> Vec<(usize, String)> {
    let events = new_cmark_parser(text, &MarkdownOptions::default()).into_offset_iter();
    let titles = events.filter_map(|(event, range)| match event {
        Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => Some(line_of(text, range.start)),
        _ => None,
    });
    let titles: Vec<usize> = titles.collect();
    let mut wrong = Vec::new();
    if titles.first() != Some(&1) {
        wrong.push((1, "a page begins with its title: write `# …` in its first line".to_owned()));
    }
    let others = titles.into_iter().filter(|line| *line != 1);
    wrong.extend(
        others.map(|line| (line, "a page has one title, in its first line: write `## …`".to_owned())),
    );
    wrong
}

fn directives_in_code(text: &str) -> Vec<(usize, String)> {
    let mut wrong = Vec::new();
    for block in fences::blocks(text) {
        for (index, line) in block.code.lines().enumerate() {
            if line.contains("{{#") || line.trim_start().starts_with("{{/") {
                let what = "a directive in a block of code stays as it is written: take it out of the block";
                wrong.push((block.line + 1 + index, what.to_owned()));
            }
        }
    }
    wrong
}

/// Braces that are not a valid directive, which would appear as written.
fn braces(text: &str) -> Vec<(usize, String)> {
    let text = markdown::without_code(text);
    let lines = text.lines().enumerate().filter(|(_, line)| closing(line).is_none());
    lines.filter_map(|(index, line)| Some((index + 1, brace(line)?))).collect()
}

fn brace(line: &str) -> Option<String> {
    let start = line.find("{{").unwrap_or(line.len());
    let (before, found) = line.split_at(start);
    if before.replace("\\}}", "").contains("}}") {
        return Some(
            "`}}` ends nothing: a directive is `{{#…}}`; for the braces themselves say `\\}}`".to_owned(),
        );
    }
    let end = found.find("}}").map_or(found.len(), |end| end + 2);
    let (whole, after) = found.split_at(end);
    if whole.is_empty() {
        return None;
    }
    if before.ends_with('\\') || whole.starts_with("{{#") {
        return brace(after);
    }
    Some(match whole.starts_with("{{/") {
        true => format!("`{whole}` must stand on a line of its own, at its start"),
        false => {
            format!(
                "`{whole}` is not a directive: write `{{{{#…}}}}`; for the braces themselves say `\\{{{{`"
            )
        }
    })
}
