//! A pasted text without what terminals, notebooks and logs add to a message.

/// A text that somebody has pasted.
pub struct Pasted {
    /// To read names and numbers from: one blank between words, nothing that moves a cursor.
    pub words: String,
    /// To compare: lower case, without blanks, quotes and backslashes. A terminal breaks lines wherever they end, also within a
    /// word, so blanks say nothing.
    pub squeezed: String,
}

/// How many bytes of a text are looked at.
const LONGEST: usize = 1 << 18;

impl Pasted {
    pub fn new(text: &str) -> Pasted {
        // The end of a long log has the error.
        let mut start = text.len().saturating_sub(LONGEST);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        let text = &text[start..];
        let text = unescaped(&without_codes(text));
        let lines = text.split(['\n', '\r']).map(without_prefix);
        let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
        let words = words.join(" ");
        Pasted { squeezed: squeezed(&words), words }
    }
}

/// A text as it is compared.
pub fn squeezed(text: &str) -> String {
    let counts = |letter: &char| !letter.is_whitespace() && !is_quote(*letter) && *letter != '\\';
    text.chars().filter(counts).flat_map(char::to_lowercase).collect()
}

/// Shells eat them, and websites bend them.
fn is_quote(letter: char) -> bool {
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

/// A line without what stands before it: the rank that printed it, the mark of a quotation, pytest's `E`.
fn without_prefix(line: &str) -> &str {
    let mut line = line.trim();
    loop {
        let rank = line.strip_prefix("[rank").and_then(|rest| {
            rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).strip_prefix("]:")
        });
        let rest = rank.or_else(|| line.strip_prefix('>')).or_else(|| line.strip_prefix("E   "));
        match rest {
            Some(rest) => line = rest.trim_start(),
            None => return line,
        }
    }
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
            ("[rank3]: CUDA out of\n[rank3]: memory", "CUDA out of memory"),
            ("> > CUDA\n> error", "CUDA error"),
            ("E   RuntimeError: x\nE       y", "RuntimeError: x y"),
            ("'errors': 'CUDA error: x\\nCUDA kernel", "'errors': 'CUDA error: x CUDA kernel"),
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
