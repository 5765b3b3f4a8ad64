//! A mistake in a chapter, and its place.

use std::collections::BTreeSet;
use std::fmt::{self, Display};

/// A mistake in the source of the book. Displays as one line, `file:line: what`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Relative to the root of the checkout.
    pub file: String,
    /// From 1.
    pub line: usize,
    pub what: String,
}

impl Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// One line per mistake. A mistake with the same cause in several places is reported once, at the first place.
pub fn lines(mistakes: &[Mistake]) -> Vec<String> {
    let mut grouped: Vec<(&Mistake, BTreeSet<(&str, usize)>)> = Vec::new();
    for mistake in mistakes {
        let place = (mistake.file.as_str(), mistake.line);
        match grouped.iter_mut().find(|(first, _)| first.what == mistake.what) {
            Some((_, places)) => drop(places.insert(place)),
            None => grouped.push((mistake, BTreeSet::from([place]))),
        }
    }
    let line = |(first, places): &(&Mistake, BTreeSet<_>)| match places.len() - 1 {
        0 => first.to_string(),
        1 => format!("{first} (and 1 more place)"),
        more => format!("{first} (and {more} more places)"),
    };
    grouped.iter().map(line).collect()
}

pub fn line_of(text: &str, byte: usize) -> usize {
    1 + text.as_bytes().iter().take(byte).filter(|&&byte| byte == b'\n').count()
}

/// A list of names for a message: `none | t4 | linear`.
pub fn choices<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(" | ")
}

#[derive(Debug)]
pub enum Wrong {
    /// The directive is wrong.
    Here(String),
    /// A file that it reads has mistakes.
    Elsewhere(Vec<Mistake>),
}

impl Wrong {
    /// The list of mistakes. A mistake in the directive gets this place.
    pub fn mistakes(self, file: &str, line: usize) -> Vec<Mistake> {
        match self {
            Wrong::Here(what) => vec![Mistake { file: file.to_owned(), line, what }],
            Wrong::Elsewhere(mistakes) => mistakes,
        }
    }
}

impl From<String> for Wrong {
    fn from(what: String) -> Wrong {
        Wrong::Here(what)
    }
}
