//! Standard input, which may have no end, and standard output and error, which may be closed or full, where `print!`
//! would panic.
//!
//! The text may come from elsewhere: an argument, a file, a student. So a terminal gets line breaks, tabs and the
//! [styles](is_style) of the course, and escapes for all other control characters.

use std::borrow::Cow;
use std::io::{self, BufRead, ErrorKind, Read, Write};

use drawing::printable::is_printable;

/// Writes to stdout. Ends the program if stdout is closed.
pub fn to_stdout(text: &str) {
    to_stdout_as_it_is(&shown(text));
}

/// Writes to stdout including cursor movements: only for the program's own text.
pub fn to_stdout_as_it_is(text: &str) {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => {}
        // `lab-03 | head -1` has all it wants: exit without an error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            to_stderr(&format!("error: the output cannot be written: {error}\n"));
            std::process::exit(1);
        }
    }
}

pub fn to_stderr(text: &str) {
    let _ = io::stderr().write_all(shown(text).as_bytes());
}

/// The maximum length of a line; a longer one is cut.
const LONGEST: u64 = 4096;
/// The maximum number of further bytes skipped. `/dev/zero` never ends its first line.
const SKIPPED: u64 = 1 << 20;

/// The next line of stdin without its end, cut if it is long. `None` at the end of the input, and for an endless line.
pub fn line() -> Option<String> {
    next_line(&mut io::stdin().lock())
}

fn next_line(input: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    let length = input.by_ref().take(LONGEST).read_until(b'\n', &mut line).ok()? as u64;
    if length == 0 {
        return None;
    }
    if length == LONGEST && line.last() != Some(&b'\n') {
        let skipped = input.by_ref().take(SKIPPED).skip_until(b'\n').ok()?;
        if skipped as u64 == SKIPPED {
            return None;
        }
    }
    let line = String::from_utf8_lossy(&line);
    Some(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// Text that is safe for a terminal.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let stays = |letter: char| is_printable(letter) || matches!(letter, '\n' | '\t');
    if text.chars().all(stays) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let style = style(rest);
        let length = style.map_or(letter.len_utf8(), str::len);
        match stays(letter) || style.is_some() {
            true => shown += &rest[..length],
            false if rest.starts_with("\r\n") => {}
            false => shown.extend(letter.escape_default()),
        }
        rest = &rest[length..];
    }
    shown.into()
}

/// The style at the start of a text, if any: `ESC [ 1 m`.
fn style(text: &str) -> Option<&str> {
    let end = text
        .strip_prefix("\x1b[")?
        .find(|letter: char| !letter.is_ascii_digit() && letter != ';')?;
    let style = text.get(..end + 3)?;
    (style.ends_with('m') && is_style(&style[2..end + 2])).then_some(style)
}

/// Whether the course uses a style: none, bold, faint, one of three colours, or any colour of a picture.
fn is_style(numbers: &str) -> bool {
    matches!(numbers, "0" | "1" | "2" | "31" | "32" | "33" | "36")
        || numbers.starts_with("38;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_styles_and_nothing_else_that_it_would_obey() {
        for text in [
            "a\tb\n",
            "\x1b[1ma\x1b[0m",
            "\x1b[38;2;1;2;3mx\x1b[0m",
            "\x1b[31mä\x1b[0m",
        ] {
            assert_eq!(shown(text), text);
        }
        for (text, escaped) in [
            ("\x1b[2J", r"\u{1b}[2J"),
            ("\x1b[8mhidden", r"\u{1b}[8mhidden"),
            ("\x1b]0;title\x07", r"\u{1b}]0;title\u{7}"),
            ("a\x1b", r"a\u{1b}"),
            ("\x1b[1", r"\u{1b}[1"),
            ("\u{9b}2J\rx", r"\u{9b}2J\rx"),
            ("\u{202e}a\r\n", "\\u{202e}a\n"),
        ] {
            assert_eq!(shown(text), escaped);
        }
    }

    #[test]
    fn lines_end_with_the_input_and_where_it_has_no_end() {
        let mut input = "one\r\n\n\u{e9}".as_bytes();
        let lines: Vec<_> = std::iter::from_fn(|| next_line(&mut input)).collect();
        assert_eq!(lines, ["one", "", "é"]);
        assert_eq!(next_line(&mut &b"\xff\n"[..]).as_deref(), Some("\u{fffd}"));
        assert_eq!(next_line(&mut io::BufReader::new(io::repeat(0))), None);
        let long = format!("{}\nnext\n", "x".repeat(100_000));
        let mut input = long.as_bytes();
        assert_eq!(
            next_line(&mut input).map(|line| line.len()),
            Some(LONGEST as usize)
        );
        assert_eq!(next_line(&mut input).as_deref(), Some("next"));
    }
}
