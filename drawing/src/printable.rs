//! Escaping of untrusted text: files, arguments, output of a student's code.
//!
//! A terminal obeys control characters: text could clear the screen, move the cursor, or set the window title.
//! Other characters hide text or reverse its direction. All of these are shown as escapes, such as `\u{1b}`.
//!
//! ```
//! use drawing::printable::{line, lines};
//! assert_eq!(line("a\u{1b}[2J\nb"), r"a\u{1b}[2J\nb");
//! assert_eq!(lines("a\u{202e}b\n\tc"), "a\\u{202e}b\n\tc");
//! ```

/// Whether a terminal shows a character as it is. Terminals obey control characters. The other non-printable
/// characters are invisible: they change the direction of text, join or separate words, or carry hidden text.
pub fn is_printable(letter: char) -> bool {
    let is_hidden = matches!(
        letter,
        '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    !letter.is_control() && !is_hidden
}

/// Escapes text for a single line.
pub fn line(text: &str) -> String {
    escaped(text, is_printable)
}

/// Escapes text but keeps line breaks and tabs.
pub fn lines(text: &str) -> String {
    escaped(&text.replace("\r\n", "\n"), |letter| is_printable(letter) || matches!(letter, '\n' | '\t'))
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match stays(letter) {
            true => shown.push(letter),
            false => shown.extend(letter.escape_default()),
        }
    }
    shown
}

/// Decodes the text of a file. The error completes "it is": "saved as UTF-16, not as UTF-8".
pub fn decoded(bytes: &[u8]) -> Result<&str, String> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    // UTF-16 starts with a byte order mark, or every second byte of Rust or JSON source in it is 0.
    let every_second = |first: usize| {
        let zeros = bytes.iter().skip(first).step_by(2).take(8);
        let others = bytes.iter().skip(1 - first).step_by(2).take(8);
        bytes.len() >= 4 && zeros.copied().all(|byte| byte == 0) && others.copied().all(|byte| byte != 0)
    };
    let is_marked = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    if is_marked || every_second(0) || every_second(1) {
        return Err("saved as UTF-16, not as UTF-8".to_owned());
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        format!("not saved as UTF-8: line {line} has other bytes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_or_hide_is_shown() {
        for (raw, shown) in [
            ("\u{1b}[2J", r"\u{1b}[2J"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}"),
            ("a\rb\u{8}", r"a\rb\u{8}"),
            ("\u{7f}", r"\u{7f}"),
            ("\u{202e}txt.exe\u{2069}", r"\u{202e}txt.exe\u{2069}"),
            ("\u{200e}\u{61c}\u{feff}", r"\u{200e}\u{61c}\u{feff}"),
            ("\u{e0041}", r"\u{e0041}"),
        ] {
            assert_eq!((line(raw).as_str(), lines(raw).as_str()), (shown, shown));
        }
        let harmless = "übung 练习 \u{2192} ░▒ 1\u{a0}µs";
        assert_eq!((line(harmless).as_str(), lines(harmless).as_str()), (harmless, harmless));
        assert_eq!(lines("a\r\nb\n"), "a\nb\n");
    }

    #[test]
    fn what_is_no_utf_8_says_what_it_is() {
        let utf_16 = |text: &str, to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(to_bytes).collect()
        };
        for text in ["use todevice;", "\u{feff}use todevice;"] {
            for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
                assert_eq!(decoded(&utf_16(text, to_bytes)).unwrap_err(), "saved as UTF-16, not as UTF-8");
            }
        }
        assert_eq!(decoded(b"a\nb\xe9").unwrap_err(), "not saved as UTF-8: line 2 has other bytes");
        assert_eq!(decoded("\u{feff}é".as_bytes()), Ok("é"));
        assert_eq!(decoded(b""), Ok(""));
    }
}
