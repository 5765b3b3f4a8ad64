//! Counts the words of a page for a reader who opens everything: all prose, folded or not, code in one language,
//! output, exercises, and questions with their reasons. Labels in pictures do not count.

use mdbook_markdown::pulldown_cmark::html::push_html;
use mdbook_markdown::{MarkdownOptions, new_cmark_parser};

/// The word limit for each page of a chapter with several pages.
pub const MOST_OF_SEVERAL: usize = 4500;
/// The word limit for the only page of a chapter. A longer page is divided.
pub const MOST_OF_ONE: usize = 8500;

/// The start and end of parts that readers never see, or see twice.
const LEFT_OUT: [(&str, &str); 3] = [
    ("<template", "</template>"),
    ("<svg", "</svg>"),
    // The same code in the other language.
    ("<div class=\"side\" data-code=\"pytorch\"", "</figure>"),
];

const INLINE: [&str; 7] = ["a", "b", "code", "em", "i", "span", "strong"];

pub fn words(expanded: &str) -> usize {
    let mut html = String::new();
    push_html(&mut html, new_cmark_parser(expanded, &MarkdownOptions::default()));
    let mut text = String::new();
    let mut rest = html.as_str();
    while let Some((before, tag)) = rest.split_once('<') {
        text += before;
        let whole = &rest[before.len()..];
        let left_out = LEFT_OUT.iter().find(|(start, _)| whole.starts_with(start));
        let end = left_out.map_or(">", |(_, end)| end);
        let name = tag.trim_start_matches('/').split(|letter: char| !letter.is_ascii_alphanumeric()).next();
        if !INLINE.contains(&name.unwrap_or_default()) {
            text.push(' ');
        }
        rest = tag.split_once(end).map_or("", |(_, after)| after);
    }
    text += rest;
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_can_be_opened_counts_once() {
        let page = "## Two words\n\nThe `code`, and *more*.\n\n<details>\n<summary>Hint</summary>\n\nFolded words\n\n</details>\n\n\
                    <div class=\"both\">\n<div class=\"side\" data-code=\"rust\">\n\n```rust\nlet a = b;\n```\n\n</div>\n\
                    <div class=\"side\" data-code=\"pytorch\">\n<figure>\n\n```python\na = b\n```\n\n</figure>\n</div>\n</div>\n\n\
                    <form>\n<template data-said=\"a\">not seen</template>\n<p>Yes<br>No</p>\n</form>\n<svg><text>label</text></svg>\n";
        // Two words; The code and more; Hint Folded words; let a b; Yes No
        assert_eq!(words(page), 2 + 4 + 3 + 3 + 2);
    }
}
