use std::path::Path;

pub use exercises::shown::counted as count;
use exercises::{printable, wrapped};
use labs::render_text::without_ticks;

pub const WIDTH: usize = 80;

/// Markdown for a terminal: paragraphs are wrapped, and each line is indented like the first.
pub fn text(markdown: &str, indent: &str) -> String {
    paragraphs(&without_emphasis(markdown), indent)
}

/// As [`text`], without the backticks around code.
pub fn plain_text(markdown: &str, indent: &str) -> String {
    paragraphs(&plain(markdown), indent)
}

/// One line of Markdown without its markup.
pub fn plain(markdown: &str) -> String {
    without_ticks(&without_emphasis(markdown))
}

fn paragraphs(text: &str, indent: &str) -> String {
    text.split("\n\n").map(|paragraph| wrapped(indent, paragraph)).collect::<Vec<_>>().join("\n")
}

/// Removes the stars around *words*. Stars in code, and stars between spaces, stay.
fn without_emphasis(markdown: &str) -> String {
    let parts = markdown.split('`').enumerate();
    let without = |prose: &str| {
        let letters: Vec<char> = prose.chars().collect();
        let is_blank =
            |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(|letter| *letter == ' ');
        let kept = letters.iter().enumerate().filter(|(at, letter)| {
            **letter != '*' || (is_blank(at.checked_sub(1)) && is_blank(Some(at + 1)))
        });
        kept.map(|(_, letter)| *letter).collect::<String>()
    };
    let parts = parts.map(|(index, part)| if index % 2 == 0 { without(part) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

/// Cuts a line to this width; a cut line ends in `…`.
pub fn shortened(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let kept: String = line.chars().take(width).collect();
    let words = kept.rsplit_once(' ').map_or("", |(words, _)| words);
    format!("{}…", words.trim_end_matches([',', ' ']))
}

pub fn name(file: &Path) -> String {
    printable::line(&file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_shown_without_its_signs_and_code_keeps_its_stars() {
        let markdown = "It *does not* run: **never** `*x` by 2 * 3.";
        assert_eq!(plain_text(markdown, ""), "It does not run: never *x by 2 * 3.\n");
        assert_eq!(text(markdown, "  "), "  It does not run: never `*x` by 2 * 3.\n");
    }
}
