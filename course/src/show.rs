//! How text looks in a terminal.

use std::path::Path;

use exercises::{printable, wrapped};

/// The width of text.
pub const WIDTH: usize = 80;

/// Markdown as a terminal shows it: paragraphs wrapped, each line indented by as much as the first.
pub fn text(markdown: &str, indent: &str) -> String {
    let paragraphs = markdown.split("\n\n").map(|paragraph| wrapped(indent, &paragraph.replace("**", "")));
    paragraphs.collect::<Vec<_>>().join("\n")
}

/// A line that is no longer than this: where something is left out, it ends in `…`.
pub fn shortened(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let kept: String = line.chars().take(width).collect();
    let words = kept.rsplit_once(' ').map_or("", |(words, _)| words);
    format!("{}…", words.trim_end_matches([',', ' ']))
}

/// The name of a file.
pub fn name(file: &Path) -> String {
    printable::line(&file.display().to_string())
}

/// A number of things.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
