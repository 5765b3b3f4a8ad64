//! The prose of a page: its sentences, without code, output, addresses and directives.

use std::ops::Range;

use mdbook_markdown::pulldown_cmark::{Event, Tag, TagEnd};
use mdbook_markdown::{MarkdownOptions, new_cmark_parser};

/// The byte that replaces code and figures in prose, so that offsets stay the same.
pub const COVER: u8 = b'x';

/// A paragraph, a heading, a list item, or a table cell.
pub struct Block {
    pub range: Range<usize>,
    /// Its prose, as long as the range. Code and figures are covered; Markdown markup becomes spaces.
    pub text: String,
    /// The header of its table.
    pub head: Option<Range<usize>>,
}

pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut parts: Vec<(Range<usize>, bool)> = Vec::new();
    let (mut head, mut in_code) = (None, false);
    for (event, range) in new_cmark_parser(page, &MarkdownOptions::default()).into_offset_iter() {
        match &event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Start(Tag::TableHead) => head = Some(range.clone()),
            Event::End(TagEnd::Table) => head = None,
            _ => {}
        }
        match event {
            Event::Text(_) if in_code => {}
            Event::Text(_) => parts.push((range, false)),
            // A number in code style still counts as a number.
            Event::Code(code) => parts.push((range, !is_number(&code))),
            // Allowed within a sentence.
            Event::SoftBreak | Event::HardBreak | Event::InlineHtml(_) | Event::FootnoteReference(_) => {}
            Event::Start(Tag::Emphasis | Tag::Strong | Tag::Link { .. } | Tag::Strikethrough) => {}
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Link | TagEnd::Strikethrough) => {}
            _ => blocks.extend(block(page, &std::mem::take(&mut parts), &head)),
        }
    }
    blocks.extend(block(page, &parts, &head));
    blocks
}

/// `4096`, `40 %`: not a name.
fn is_number(code: &str) -> bool {
    let digits = code.replace(['_', ',', ' ', '−', '%'], "");
    digits.contains(|letter: char| letter.is_ascii_digit()) && digits.parse::<f64>().is_ok()
}

fn block(page: &str, parts: &[(Range<usize>, bool)], head: &Option<Range<usize>>) -> Option<Block> {
    let range = parts.first()?.0.start..parts.last()?.0.end;
    let mut text = vec![b' '; range.len()];
    for (part, is_code) in parts {
        let place = part.start - range.start..part.end - range.start;
        match is_code {
            true => text[place].fill(COVER),
            false => text[place].copy_from_slice(&page.as_bytes()[part.clone()]),
        }
    }
    // Directives are plain text in Markdown, and may be split at their underscores.
    let source = &page.as_bytes()[range.clone()];
    let mut from = 0;
    while let Some(start) = find(source, b"{{", from) {
        let end = find(source, b"}}", start).map_or(source.len(), |end| end + 2);
        text[start..end].fill(if source[start..].starts_with(b"{{#figure") { COVER } else { b' ' });
        from = end;
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let says = text.bytes().any(|byte| byte != COVER && byte != b' ');
    says.then(|| Block { range, text, head: head.clone() })
}

fn find(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    bytes[from..].windows(wanted.len()).position(|window| window == wanted).map(|at| from + at)
}

/// The text with single spaces instead of line breaks, and the original offset of each byte.
pub fn unwrapped(text: &str) -> (String, Vec<usize>) {
    let (mut unwrapped, mut places) = (String::new(), Vec::new());
    for (at, letter) in text.char_indices() {
        let letter = if letter.is_whitespace() { ' ' } else { letter };
        if letter == ' ' && (unwrapped.is_empty() || unwrapped.ends_with(' ')) {
            continue;
        }
        unwrapped.push(letter);
        places.resize(unwrapped.len(), at);
    }
    unwrapped.truncate(unwrapped.trim_end().len());
    (unwrapped, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_sentences_without_code_addresses_and_directives() {
        let page = "# A 1\n\n{{#lab-run 03}}\n\nOne `x.to(1)` is **so\nmuch** as [b 2](c4.md \"5\") {{#figure 03 t4 a_b 3}}.\n\n\
                    ```rust\n6\n```\n\n- d `7`\n- e <!-- 8 -->\n\n| f | g |\n| - | - |\n| 9 | h |\n\n{{#sources}}\n- i\n{{/sources}}\n";
        let found = blocks(page);
        let said: Vec<String> = found.iter().map(|block| unwrapped(&block.text).0).collect();
        let one = "One xxxxxxxxx is so much as b 2 xxxxxxxxxxxxxxxxxxxxxxx.";
        let one = one.replace("xxxxxxxxxxxxxxxxxxxxxxx", &"x".repeat("{{#figure 03 t4 a_b 3}}".len()));
        assert_eq!(said, ["A 1", &one, "d `7`", "e", "f", "g", "9", "h", "i"]);
        assert!(found.iter().all(|block| block.text.len() == block.range.len()));
        let heads: Vec<_> = found.iter().filter_map(|block| Some(page[block.head.clone()?].trim())).collect();
        assert_eq!(heads, ["| f | g |"; 4]);
    }

    #[test]
    fn broken_lines_are_put_together_and_keep_their_places() {
        let (text, places) = unwrapped(" ä\n  b c ");
        assert_eq!(text, "ä b c");
        assert_eq!(places[text.find('b').unwrap()], 6);
    }
}
