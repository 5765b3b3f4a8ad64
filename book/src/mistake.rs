//! What is wrong in a chapter, and where.

use std::collections::BTreeSet;
use std::fmt::{self, Display};

/// A mistake of whoever writes the book. Prints as one line, `file:line: what`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file, from the root of the checkout.
    pub file: String,
    /// The line in it, from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// A line for each mistake. What is wrong in several places for the same reason is told once, with the first of them.
pub fn lines(mistakes: &[Mistake]) -> Vec<String> {
    let mut told: Vec<(&Mistake, BTreeSet<(&str, usize)>)> = Vec::new();
    for mistake in mistakes {
        let place = (mistake.file.as_str(), mistake.line);
        match told.iter_mut().find(|(first, _)| first.what == mistake.what) {
            Some((_, places)) => drop(places.insert(place)),
            None => told.push((mistake, BTreeSet::from([place]))),
        }
    }
    let line = |(first, places): &(&Mistake, BTreeSet<_>)| match places.len() - 1 {
        0 => first.to_string(),
        1 => format!("{first} (and 1 more place)"),
        more => format!("{first} (and {more} more places)"),
    };
    told.iter().map(line).collect()
}

/// The number of the line in which a byte of a text stands.
pub fn line_of(text: &str, byte: usize) -> usize {
    1 + text.as_bytes().iter().take(byte).filter(|&&byte| byte == b'\n').count()
}

/// Names to choose from, for a message: `none | t4 | linear`.
pub fn choices<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(" | ")
}

/// Why a directive cannot be carried out.
#[derive(Debug)]
pub enum Wrong {
    /// Its own line says something wrong.
    Here(String),
    /// A file that it reads has mistakes.
    Elsewhere(Vec<Mistake>),
}

impl Wrong {
    /// The mistakes, those of its own line with their place.
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
