//! What is wrong in a chapter, and where.

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

impl From<String> for Wrong {
    fn from(what: String) -> Wrong {
        Wrong::Here(what)
    }
}
