//! A pasted text without what terminals, notebooks and logs add to a message.

use crate::prefix;

/// A text that somebody has pasted.
pub struct Pasted {
    /// To read names and numbers from: one blank between words, nothing that moves a cursor, and [`BREAK`] where a line may have
    /// ended within a word.
    pub words: String,
    /// To compare: see [`squeezed`].
    pub squeezed: String,
}

/// The end of a line between two letters. A terminal breaks lines wherever they end, so `1` and `28` may be one number or two.
pub const BREAK: char = '\u{2060}';

/// How many bytes of a text are looked at.
const LONGEST: usize = 1 << 18;

impl Pasted {
    pub fn new(text: &str) -> Pasted {
        // The end of a long log has the error.
        let mut start = text.len().saturating_sub(LONGEST);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        let text = without_entities(&text[start..]);
        let text = unescaped(&without_codes(&text)).replace("\r\n", "\n").replace('\r', "\n");
        let words = joined(&prefix::without(&text));
        Pasted { squeezed: squeezed(&words), words }
    }
}

/// Lines as one, with a mark where the end of a line may stand within a word.
fn joined(lines: &[&str]) -> String {
    let mut words = String::new();
    // How far the line before was indented, if it belongs to the same paragraph. One more is the blank at which a line was broken.
    let mut before = None;
    for line in lines {
        let text = line.trim();
        if text.is_empty() {
            before = None;
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let is_open = before.is_some_and(|before| indent != before + 1)
            && words.ends_with(may_be_within)
            && text.starts_with(may_be_within)
            // It is a word of its own in lists of two.
            && !words.ends_with(" and")
            && !text.starts_with("and ");
        if !words.is_empty() {
            words.push(if is_open { BREAK } else { ' ' });
        }
        for (index, word) in text.split_whitespace().enumerate() {
            words.push_str(if index == 0 { "" } else { " " });
            words.push_str(word);
        }
        before = Some(indent);
    }
    words
}

/// Whether names and numbers have this letter. Those of PyTorch are ASCII; the tables of all letters would weigh in the page.
fn may_be_within(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._:-/".contains(letter)
}

/// A text as it is compared: lower case, without blanks, quotes and backslashes. Lines may end within a word, so blanks say nothing, but
/// for those between two numbers.
pub fn squeezed(text: &str) -> String {
    let mut squeezed = String::new();
    let mut is_apart = false;
    for letter in text.chars() {
        if letter.is_whitespace() {
            is_apart = true;
        } else if !is_quote(letter) && letter != '\\' && letter != BREAK {
            if is_apart && letter.is_ascii_digit() && squeezed.ends_with(|last: char| last.is_ascii_digit()) {
                squeezed.push(' ');
            }
            squeezed.push(letter.to_ascii_lowercase());
            is_apart = false;
        }
    }
    squeezed
}

/// Without the names that HTML has for some letters.
fn without_entities(text: &str) -> String {
    let mut text = text.to_owned();
    let entities = [
        ("&amp;", "&"),
        ("&gt;", ">"),
        ("&lt;", "<"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&nbsp;", " "),
    ];
    for (entity, letter) in entities {
        // Most texts have none, and may be long.
        if text.contains(entity) {
            text = text.replace(entity, letter);
        }
    }
    text
}

/// Shells eat them, and websites bend them.
pub fn is_quote(letter: char) -> bool {
    matches!(letter, '\'' | '"' | '`' | '´' | '‘' | '’' | '‚' | '“' | '”' | '„' | '«' | '»')
}

/// Without the codes that colour a terminal, also where a notebook or a log has written them out, and without what nobody sees.
fn without_codes(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some(letter) = rest.chars().next() {
        let code = ["\u{1b}", "\u{9b}", "\\u001b", "\\x1b", "\\033", "\\e"]
            .iter()
            .find(|code| rest.get(..code.len()).is_some_and(|start| start.eq_ignore_ascii_case(code)));
        if let Some(code) = code {
            rest = after_code(&rest[code.len()..], *code == "\u{9b}");
        } else if let Some(after) = after_colour(rest) {
            rest = after;
        } else {
            rest = &rest[letter.len_utf8()..];
            match letter {
                '\n' | '\r' | '\t' => kept.push(letter),
                // Frames around a traceback.
                '\u{2500}'..='\u{259f}' | '❱' => kept.push(' '),
                '\u{ad}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}' => {}
                _ if letter.is_control() => kept.push(' '),
                _ => kept.push(letter),
            }
        }
    }
    kept
}

/// What follows an escape code that has begun: `[31m`, `]0;a title` up to its end, or a single letter.
fn after_code(text: &str, is_open: bool) -> &str {
    let body = if is_open { Some(text) } else { text.strip_prefix('[') };
    if let Some(body) = body {
        let parameters = body.trim_start_matches(|letter: char| (' '..='?').contains(&letter));
        let mut letters = parameters.chars();
        return match letters.next() {
            Some('@'..='~') => letters.as_str(),
            _ => parameters,
        };
    }
    if let Some(title) = text.strip_prefix(']') {
        return match title.find(['\u{7}', '\u{1b}', '\n']) {
            Some(end) if title[end..].starts_with("\u{1b}\\") => &title[end + 2..],
            Some(end) if title[end..].starts_with('\u{7}') => &title[end + 1..],
            Some(end) => &title[end..],
            None => "",
        };
    }
    let mut letters = text.chars();
    match letters.next() {
        Some(letter) if letter.is_ascii_graphic() => letters.as_str(),
        _ => text,
    }
}

/// `[0;31m`, of which a website has shown no escape character.
fn after_colour(text: &str) -> Option<&str> {
    let numbers = text.strip_prefix('[')?;
    let after = numbers.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ';');
    if after.len() == numbers.len() { None } else { after.strip_prefix('m') }
}

/// Lines that were written out: a log in JSON has `\n`.
fn unescaped(text: &str) -> String {
    // A Windows path has such letters too. They matter to no message.
    text.replace("\\r", "\n").replace("\\n", "\n").replace("\\t", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_frames_and_prefixes_are_taken_off() {
        for (text, words) in [
            ("\u{1b}[0;31mRuntimeError\u{1b}[0m: CUDA", "RuntimeError: CUDA"),
            ("\\u001b[0;31mRuntimeError\\u001b[0m: CUDA", "RuntimeError: CUDA"),
            ("[0;31mRuntimeError[0m: CUDA", "RuntimeError: CUDA"),
            ("\u{1b}]0;a title\u{7}CUDA \u{9b}1merror", "CUDA error"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("│ ❱ 12 │ x.to(device) │\r\n╰──╯", "12 x.to(device)"),
            ("[rank3]: CUDA out of\n[rank3]: memory", "CUDA out of\u{2060}memory"),
            ("> > CUDA\n> error", "CUDA\u{2060}error"),
            ("E   RuntimeError: x\nE       y", "RuntimeError: x\u{2060}y"),
            ("'errors': 'CUDA error: x\\nCUDA kernel", "'errors': 'CUDA error: x\u{2060}CUDA kernel"),
            ("a\u{200b}b\u{7}c", "ab c"),
            ("[64, 128] [64m2]", "[64, 128] 2]"),
        ] {
            assert_eq!(Pasted::new(text).words, words, "{text:?}");
        }
    }

    #[test]
    fn what_is_compared_has_no_blanks_quotes_or_capitals() {
        assert_eq!(Pasted::new("the ‘spawn’ start\nmeth\nod\\'").squeezed, "thespawnstartmethod");
    }
}
