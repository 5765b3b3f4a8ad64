//! Finds string literals in Rust and TOML sources.

use crate::prose::COVER;

pub struct Literal {
    /// The byte offset of its text.
    pub at: usize,
    /// The text with escapes replaced by spaces, of the same length.
    pub raw: String,
    /// The same with code and format arguments covered.
    pub covered: String,
}

pub fn literals(source: &str, comment: &str) -> Vec<Literal> {
    let bytes = source.as_bytes();
    let mut literals = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &source[at..];
        if rest.starts_with(comment) {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some(hashes) = raw_string(rest).filter(|_| comment == "//") {
            let start = at + hashes + 2;
            let end = format!("\"{}", "#".repeat(hashes));
            let length = source[start..].find(&end).unwrap_or(source.len() - start);
            literals.push(literal(start, source[start..start + length].to_owned()));
            at = start + length + end.len();
        } else if bytes[at] == b'"' {
            let raw = string(&source[at + 1..]);
            let length = raw.len();
            literals.push(literal(at + 1, raw));
            at += length + 2;
        } else if let Some(length) = letter(rest).filter(|_| comment == "//") {
            at += length;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    literals
}

/// The number of `#` at the start of a raw string, `r#"…"#`.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// The length of `'"'` or `'\''`, which begin no string.
fn letter(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let mut letters = inside.char_indices().skip(if inside.starts_with('\\') { 2 } else { 1 });
    let (end, letter) = letters.next()?;
    (letter == '\'').then_some(end + 2)
}

/// The text after an opening quote up to the closing one, without escapes.
fn string(rest: &str) -> String {
    let mut raw = String::new();
    let mut letters = rest.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => {
                raw.push(' ');
                let escaped = letters.next().unwrap_or(' ');
                raw.push_str(if escaped == '"' { "\"" } else { &"      "[..escaped.len_utf8()] });
            }
            letter => raw.push(letter),
        }
    }
    raw
}

fn literal(at: usize, raw: String) -> Literal {
    let mut covered = raw.clone().into_bytes();
    for (start, end) in [("`", "`"), ("{", "}")] {
        let mut from = 0;
        while let Some(begin) = raw[from..].find(start).map(|place| from + place) {
            let after = begin + start.len();
            let Some(length) = raw[after..].find(end) else { break };
            from = after + length + end.len();
            covered[begin..from].fill(COVER);
        }
    }
    Literal { at, raw, covered: String::from_utf8_lossy(&covered).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_and_comments_letters_and_lifetimes_are_none() {
        let rust = "// \"no\"\nlet a: &'a str = \"one `b(\\\"c\\\")` {d:.2} \\\n    two\\n\"; let e = '\"'; f('\\'', r#\"raw \"x\"\"#);";
        let found = literals(rust, "//");
        let covered: Vec<String> =
            found.iter().map(|text| crate::prose::unwrapped(&text.covered).0).collect();
        assert_eq!(covered, ["one xxxxxxxxxx xxxxxx two", "raw \"x\""]);
        assert!(found.iter().all(|text| text.raw.len() == text.covered.len()));
        assert_eq!(&rust[found[1].at..found[1].at + 3], "raw");

        let toml = "# \"no\"\nask = \"It's {{#figure 03 t4 a}}?\"\n";
        let [ask] = &literals(toml, "#")[..] else { panic!() };
        assert_eq!((ask.at, ask.raw.as_str()), (14, "It's {{#figure 03 t4 a}}?"));
        assert!(ask.covered.starts_with("It's xxx"));
    }
}
