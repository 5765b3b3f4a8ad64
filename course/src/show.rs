//! How text looks in a terminal.

/// The width of text.
pub const WIDTH: usize = 80;

/// Markdown as a terminal shows it: paragraphs wrapped, each further line indented by as much as the first, without ticks.
pub fn text(markdown: &str, indent: &str) -> String {
    let mut shown = String::new();
    for paragraph in markdown.split("\n\n") {
        if !shown.is_empty() {
            shown.push('\n');
        }
        let mut line = indent.to_owned();
        for word in paragraph.split_whitespace() {
            let word = word.replace("**", "");
            let is_first = line.len() == indent.len();
            if !is_first && line.chars().count() + 1 + word.chars().count() > WIDTH {
                shown += &format!("{}\n", line.trim_end());
                line = indent.to_owned();
            } else if !is_first {
                line.push(' ');
            }
            line += &word;
        }
        shown += &format!("{}\n", line.trim_end());
    }
    shown
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

/// A number of things.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
