use mdbook_markdown::pulldown_cmark::html::push_html;
use mdbook_markdown::{MarkdownOptions, new_cmark_parser};

pub use labs::render_html::{NOTE, bytes, escape};

use crate::markdown;

/// Wraps Markdown in HTML, separated by blank lines.
pub fn captioned(class: &str, markdown: &str, caption: &str) -> String {
    figure(class, "", markdown, caption)
}

/// As [`captioned`], with more attributes, each preceded by a space.
pub fn figure(class: &str, attributes: &str, markdown: &str, caption: &str) -> String {
    format!(
        "<figure class=\"{class}\"{attributes}>\n\n{}\n\n<figcaption>{caption}</figcaption>\n</figure>\n\n",
        markdown.trim_end()
    )
}

/// Converts a line of Markdown, such as a question, to HTML on one line. The error says what is wrong with it.
pub fn inline(markdown: &str) -> Result<String, String> {
    if let Some((_, what)) = markdown::mistakes(markdown).into_iter().next() {
        return Err(what);
    }
    let mut html = String::new();
    push_html(&mut html, new_cmark_parser(markdown.trim(), &MarkdownOptions::default()));
    let html = html.trim();
    let html = html.strip_prefix("<p>").and_then(|html| html.strip_suffix("</p>")).unwrap_or(html);
    Ok(html.replace('\n', " "))
}

/// A fenced code block in Markdown, whatever the code contains.
pub fn fence(language: &str, code: &str) -> String {
    let longest = code.lines().map(|line| line.chars().take_while(|&letter| letter == '`').count()).max();
    let ticks = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    format!("{ticks}{language}\n{}\n{ticks}\n", code.trim_end_matches('\n'))
}
