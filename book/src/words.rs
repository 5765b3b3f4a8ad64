//! Counts the words of a chapter.

use mdbook_markdown::pulldown_cmark::{Event, Tag, TagEnd};
use mdbook_markdown::{MarkdownOptions, new_cmark_parser};

use crate::html::NOTE;

pub const MOST: usize = 2200;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// All other prose.
    pub open: usize,
    /// In folds, which a reader opens.
    pub folded: usize,
    /// In exercises and source lists.
    pub apart: usize,
}

impl Words {
    /// Counts the words of a page whose directives are expanded. Code, output, predictions, questions and the map are
    /// HTML or code blocks, and do not count.
    pub fn of(expanded: &str) -> Words {
        let mut words = Words::default();
        let (mut folds, mut apart) = (0_usize, Vec::new());
        let (mut in_code, mut in_note) = (false, false);
        for event in new_cmark_parser(expanded, &MarkdownOptions::default()) {
            match event {
                Event::Start(Tag::CodeBlock(_)) => in_code = true,
                Event::End(TagEnd::CodeBlock) => in_code = false,
                Event::InlineHtml(tag) => in_note = &*tag == NOTE,
                Event::Html(html) => {
                    folds += html.matches("<details").count();
                    folds = folds.saturating_sub(html.matches("</details>").count());
                    for (at, _) in html.match_indices("<div") {
                        let tag = &html[at..];
                        let is_apart = ["<div class=\"exercise\"", "<div class=\"sources\""];
                        apart.push(is_apart.iter().any(|class| tag.starts_with(class)));
                    }
                    let left = apart.len().saturating_sub(html.matches("</div>").count());
                    apart.truncate(left);
                }
                Event::Text(text) | Event::Code(text) if !in_code && !in_note => {
                    let count =
                        text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
                    match (apart.contains(&true), folds) {
                        (true, _) => words.apart += count,
                        (_, 0) => words.open += count,
                        _ => words.folded += count,
                    }
                }
                _ => {}
            }
        }
        words
    }

    pub fn all(self) -> usize {
        self.open + self.folded + self.apart
    }

    /// The number of words that counts for the limit. Folded words count half.
    pub fn counted(self) -> usize {
        self.open + self.folded.div_ceil(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html;

    #[test]
    fn words_in_sight_count_those_in_folds_half_and_others_not() {
        let note = html::bytes("5 MiB", Some("5,242,880 bytes"));
        let sight = format!("## A heading\n\nMove `x` by **{note}**, [or not](x.md).\n\n");
        let page = format!(
            "{sight}```rust\nlet a = b;\n```\n\n<div class=\"predict\">\n<p>No words</p>\n</div>\n\n\
             <details class=\"after\">\n<summary>What</summary>\n\nOne two\n\n<div class=\"objectives\">\n\n- three\n\n</div>\n\n\
             </details>\n\n<div class=\"exercise\" id=\"x\">\n\nFour words are here\n\n<details>\n<summary>Hint</summary>\n\nfive\n\n\
             </details>\n\n</div>\n\n<div class=\"sources\">\n\n- Six words of this page are here\n\n</div>\n\n"
        );
        let words = Words::of(&page);
        assert_eq!(words, Words { open: 9, folded: 3, apart: 12 });
        assert_eq!((words.counted(), words.all()), (11, 24));
    }
}
