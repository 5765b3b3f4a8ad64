//! Text as HTML, to stand inside a page's Markdown.

use mdbook_markdown::pulldown_cmark::html::push_html;
use mdbook_markdown::{MarkdownOptions, new_cmark_parser};

/// Text with nothing in it that HTML would take for a tag.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A line of Markdown, such as a question, as HTML on one line.
pub fn inline(markdown: &str) -> String {
    let mut html = String::new();
    push_html(&mut html, new_cmark_parser(markdown.trim(), &MarkdownOptions::default()));
    let html = html.trim();
    let html = html.strip_prefix("<p>").and_then(|html| html.strip_suffix("</p>")).unwrap_or(html);
    html.replace('\n', " ")
}

/// A block of code as Markdown, whatever the code contains.
pub fn fence(language: &str, code: &str) -> String {
    let longest = code.lines().map(|line| line.chars().take_while(|&letter| letter == '`').count()).max();
    let ticks = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    format!("{ticks}{language}\n{}\n{ticks}\n", code.trim_end_matches('\n'))
}
