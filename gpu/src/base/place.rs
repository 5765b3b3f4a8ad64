//! A line of the user's program.

use std::fmt;
use std::panic::Location;

/// A line of a program in Rust, or of a script that an interpreter runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    Rust(&'static Location<'static>),
    Script(&'static ScriptLine),
}

/// A line of a script.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ScriptLine {
    pub file: String,
    pub line: u32,
}

impl Place {
    /// The caller's line.
    #[track_caller]
    pub fn caller() -> Place {
        Place::Rust(Location::caller())
    }

    pub fn file(self) -> &'static str {
        match self {
            Place::Rust(location) => location.file(),
            Place::Script(script) => &script.file,
        }
    }

    pub fn line(self) -> u32 {
        match self {
            Place::Rust(location) => location.line(),
            Place::Script(script) => script.line,
        }
    }

    /// The column in Rust, or 1.
    pub fn column(self) -> u32 {
        match self {
            Place::Rust(location) => location.column(),
            Place::Script(_) => 1,
        }
    }
}

impl From<&'static Location<'static>> for Place {
    #[inline(always)]
    fn from(location: &'static Location<'static>) -> Place {
        Place::Rust(location)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Rust(location) => location.fmt(f),
            Place::Script(script) => write!(f, "{}:{}", script.file, script.line),
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
