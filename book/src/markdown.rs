//! Parses Markdown as mdBook does: finds code, and syntax that does not mean what it seems to.

use std::ops::Range;

use mdbook_markdown::pulldown_cmark::{BrokenLink, CowStr, Event, LinkType, Options, Parser, Tag};
use mdbook_markdown::{MarkdownOptions, new_cmark_parser};

/// Replaces code by spaces, so that offsets stay the same.
pub fn without_code(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (event, range) in new_cmark_parser(text, &MarkdownOptions::default()).into_offset_iter() {
        if matches!(event, Event::Code(_) | Event::Start(Tag::CodeBlock(_))) {
            bytes[range].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Links and pictures, each with its byte offset and its target.
pub fn links(text: &str) -> Vec<(usize, String)> {
    let events = new_cmark_parser(text, &MarkdownOptions::default()).into_offset_iter();
    let links = events.filter_map(|(event, range)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some((range.start, dest_url.to_string()))
        }
        _ => None,
    });
    links.collect()
}

/// Whether the rendered text contains a letter or a digit.
pub fn has_words(text: &str) -> bool {
    new_cmark_parser(text, &MarkdownOptions::default()).any(|event| match event {
        Event::Text(text) | Event::Code(text) => text.contains(char::is_alphanumeric),
        _ => false,
    })
}

pub fn mistakes(text: &str) -> Vec<(usize, String)> {
    let mut mistakes = Vec::new();
    for (event, range) in new_cmark_parser(text, &MarkdownOptions::default()).into_offset_iter() {
        if matches!(event, Event::Start(Tag::HtmlBlock) | Event::InlineHtml(_))
            && !is_old_place(text, &range)
            && let Some((at, what)) = html(&text[range.clone()])
        {
            // A closing tag is not reported again after its opening tag.
            if mistakes.is_empty() || !text[range.start + at..].starts_with("</") {
                mistakes.push((range.start + at, what));
            }
        }
    }
    mistakes.extend(broken_references(text));
    mistakes
}

/// Whether a tag is part of `<a id="words"></a>`, the target of old links to a removed heading.
fn is_old_place(text: &str, tag: &Range<usize>) -> bool {
    let start = if &text[tag.clone()] == "</a>" { text[..tag.start].rfind('<') } else { Some(tag.start) };
    let place = start.and_then(|start| text[start..].strip_prefix("<a id=\"")?.split_once("\"></a>"));
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    place.is_some_and(|(id, _)| !id.is_empty() && id.bytes().all(is_word))
}

/// Rejects HTML other than comments, because no check looks into it: not for the language of code, nor for unclosed
/// tags.
fn html(html: &str) -> Option<(usize, String)> {
    let start = html.find('<')?;
    if let Some(comment) = html[start..].strip_prefix("<!--") {
        let Some(length) = comment.find("-->") else {
            return Some((start, "this comment is never closed: end it with `-->`".to_owned()));
        };
        let after = start + "<!--".len() + length + "-->".len();
        return self::html(&html[after..]).map(|(at, what)| (after + at, what));
    }
    let tag = html[start..].split_inclusive('>').next().unwrap_or_default();
    let tag = tag.split('\n').next().unwrap_or_default();
    Some((start, format!("`{tag}` is HTML, which is not checked: write Markdown")))
}

/// `[text][name]`, `[name][]` and `[^1]` without their definitions, which would appear as written.
fn broken_references(text: &str) -> Vec<(usize, String)> {
    let parser = new_cmark_parser(text, &MarkdownOptions::default());
    let footnotes = parser.filter_map(|event| match event {
        Event::Start(Tag::FootnoteDefinition(name)) => Some(format!("^{name}")),
        _ => None,
    });
    let footnotes: Vec<String> = footnotes.collect();
    let mut broken = Vec::new();
    let note = |link: BrokenLink| -> Option<(CowStr, CowStr)> {
        let shown = text[link.span.clone()].replace('\n', " ");
        let name = link.reference.replace('\n', " ");
        // `[3, 4]` alone is plain text.
        let by_itself = link.link_type == LinkType::Shortcut && !name.starts_with('^');
        if by_itself || footnotes.contains(&name) {
            return None;
        }
        let what =
            format!("`{shown}` leads nowhere: add a line `[{name}]: …`, or write `\\[` if it is no link");
        broken.push((link.span.start, what));
        None
    };
    // mdBook's options without footnotes: a parser with footnotes does not report missing ones.
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_SMART_PUNCTUATION
        | Options::ENABLE_DEFINITION_LIST
        | Options::ENABLE_GFM;
    Parser::new_with_broken_link_callback(text, options, Some(note)).for_each(drop);
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        mistakes(text).into_iter().map(|(at, what)| format!("{at}: {what}")).collect()
    }

    #[test]
    fn html_is_told_with_its_place_and_comments_are_not() {
        assert_eq!(
            said("A <!-- comment -->\n\n<!-- <b>\n\n</b> -->\n\n`<b>` &lt;b> <https://example.org>"),
            [""; 0]
        );
        assert_eq!(said("a <b>c</b>")[0], "2: `<b>` is HTML, which is not checked: write Markdown");
        assert_eq!(
            said("<!-- a --><PRE class=\"x\">\nb\n</PRE>\n"),
            ["10: `<PRE class=\"x\">` is HTML, which is not checked: write Markdown"]
        );
        assert_eq!(said("<a id=\"old-1\"></a><a id=\"old-2\"></a>\n\nA <a id=\"old-3\"></a>b."), [""; 0]);
        for wrong in ["<a id=\"old\">b</a>", "<a id=\"\"></a>", "<a id=\"Old\"></a>", "<a href=\"b\"></a>"] {
            assert!(said(wrong)[0].starts_with("0: `<a "), "{wrong}: {:?}", said(wrong));
        }
        assert_eq!(said("- <!-- a\n\nb"), ["2: this comment is never closed: end it with `-->`"]);
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_told_with_its_place() {
        let end = "add a line `[gone]: …`, or write `\\[` if it is no link";
        assert_eq!(said("a [this][gone]"), [format!("2: `[this][gone]` leads nowhere: {end}")]);
        assert_eq!(said("![gone][]"), [format!("0: `![gone]` leads nowhere: {end}")]);
        assert!(said("a[^1] b")[0].starts_with("1: `[^1]` leads nowhere: add a line `[^1]: …`"));
        let right = "[a](b.md) [c] [d][c] e[^1] e[^two] [3, 4] \\[f] `[g]` [ ]\n\n- [ ] h\n\n> [!NOTE]\n> i\n\n[c]: c.md\n[^1]: one\n\n[^two]: two words\n";
        assert_eq!(said(right), [""; 0]);
    }

    #[test]
    fn code_is_left_out_and_everything_else_keeps_its_place() {
        assert_eq!(without_code("ä `b{{` c\n\n```text\n{{\n```\n"), "ä       c\n\n       \n  \n   \n");
    }
}
