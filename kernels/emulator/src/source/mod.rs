//! Files, positions in them, and errors that point to a position.

pub mod condition;
mod errors;
pub mod first_headers;
pub mod foreign;
pub mod headers;
pub mod lexer;
mod macros;
pub mod preprocessor;

pub use errors::{Error, Errors, MOST_ERRORS, Result, clipped};

/// A position in a file. Lines and columns count from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    pub file: u32,
    pub line: u32,
    pub column: u32,
    pub length: u32,
}

#[derive(Clone, Debug)]
pub struct File {
    pub name: String,
    pub text: String,
}

/// All files of a program, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct Files(pub Vec<File>);

impl Files {
    /// Adds a file and returns its number. The host's pass reads the same files as the device's, so a known file
    /// keeps its number.
    pub fn add(&mut self, name: &str, text: &str) -> u32 {
        if let Some(known) = self.0.iter().position(|file| file.name == name && file.text == text) {
            return known as u32;
        }
        self.0.push(File { name: name.to_owned(), text: text.to_owned() });
        self.0.len() as u32 - 1
    }

    /// Formats a position, such as `my.cu:3:5`.
    pub fn place(&self, span: Span) -> String {
        let name = self.0.get(span.file as usize).map_or("?", |file| file.name.as_str());
        format!("{name}:{}:{}", span.line, span.column)
    }

    pub fn line(&self, span: Span) -> &str {
        let file = self.0.get(span.file as usize);
        file.and_then(|file| file.text.lines().nth(span.line.max(1) as usize - 1)).unwrap_or("")
    }
}
