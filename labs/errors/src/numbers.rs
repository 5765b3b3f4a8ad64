//! Names and numbers out of messages.

use crate::Pasted;
use crate::text::{BREAK, is_quote};

impl Pasted {
    /// What stands between two texts, if it is short and plain: it is shown again, so it may have no letter that means something to a
    /// terminal or a page. A line's end within it may have split a word, so then there is nothing to show.
    pub fn between(&self, before: &str, after: &str) -> Option<&str> {
        let rest = self.after(before)?;
        let found =
            if after.is_empty() { rest.split(' ').next()? } else { &rest[..spread(rest, after, 0)?.0] };
        let found =
            found.trim_end_matches(is_blank).trim_end_matches(['.', ',', ';', '!']).trim_matches(is_quote);
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " _.,:;[]()-+/=".contains(letter);
        (!found.is_empty() && found.len() <= 80 && found.chars().all(is_plain)).then_some(found)
    }

    /// The same, if it is a single word, such as the name of a device.
    pub fn word(&self, before: &str, after: &str) -> Option<&str> {
        let is_name =
            |found: &&str| !found.contains(' ') && !found.starts_with(|letter: char| letter.is_ascii_digit());
        self.between(before, after).filter(is_name)
    }

    /// A whole number after a text, unless it may go on: its line ends before another digit.
    pub fn number(&self, before: &str) -> Option<u64> {
        let is_digit = |letter: char| letter.is_ascii_digit();
        let rest = self.after(before)?;
        let after = rest.trim_start_matches(is_digit);
        // A date in a log begins with a number too.
        let goes_on =
            after.strip_prefix([BREAK, '-', ':', '/']).is_some_and(|next| next.starts_with(is_digit));
        rest[..rest.len() - after.len()].parse().ok().filter(|_| !goes_on)
    }

    /// What follows the last place of a text: what ended the program comes last.
    pub fn after(&self, text: &str) -> Option<&str> {
        let mut found = None;
        let mut from = 0;
        while let Some((_, end)) = spread(&self.words, text, from) {
            found = Some(self.words[end..].trim_start_matches(is_blank));
            from = end;
        }
        found
    }

    /// Whether the text says this, whatever its blanks and capitals.
    pub fn says(&self, words: &str) -> bool {
        self.squeezed.contains(&crate::text::squeezed(words))
    }
}

/// Where a text begins and ends in another, from a byte on, whatever blanks there are: a line may have been broken within a word.
fn spread(text: &str, wanted: &str, from: usize) -> Option<(usize, usize)> {
    let wanted: Vec<char> = wanted.chars().filter(|letter| !letter.is_whitespace()).collect();
    let first = wanted.first()?;
    let ends = |start: usize| {
        let mut letters = text[start..].char_indices().filter(|(_, letter)| !is_blank(*letter));
        let mut end = start;
        for wanted in &wanted {
            let (at, letter) = letters.next().filter(|(_, letter)| letter == wanted)?;
            end = start + at + letter.len_utf8();
        }
        Some((start, end))
    };
    text[from..].match_indices(*first).find_map(|(at, _)| ends(from + at))
}

/// Whether a character may stand between two words.
fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || letter == BREAK
}

/// Whether a text is a shape, such as `[64, 128]`.
pub fn is_shape(text: &str) -> bool {
    text.starts_with('[') && text.bytes().all(|byte| b"0123456789, []".contains(&byte))
}

/// `512 bytes`, `1.50 GiB`
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let power = (bytes.ilog2() / 10).min(UNITS.len() as u32);
    // Whole numbers: a module for a page does without the code that writes others.
    let hundredths = ((u128::from(bytes) * 100 + (1 << (10 * power - 1))) >> (10 * power)) as u64;
    format!("{}.{:02} {}", hundredths / 100, hundredths % 100, UNITS[power as usize - 1])
}
