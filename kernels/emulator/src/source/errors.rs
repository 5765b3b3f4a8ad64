//! Errors that point to a position, in rustc's format.

use super::{Files, Span};

/// The maximum number of errors that are listed.
pub const MOST_ERRORS: usize = 20;
/// The maximum number of characters of a line that are shown.
const MOST_SHOWN: usize = 160;

/// An error of the program, with its position.
#[derive(Clone, Debug)]
pub struct Error {
    pub message: String,
    pub span: Span,
    /// The text below the marked position.
    pub label: String,
    pub help: Option<String>,
    /// Further positions, such as where a template was instantiated.
    pub notes: Vec<(String, Span)>,
    /// The error follows from one that is already listed.
    pub is_known: bool,
    /// The program is valid, and probably not meant like this.
    pub is_warning: bool,
    /// Nothing after this error is checked.
    pub is_last: bool,
}

pub type Result<T> = std::result::Result<T, Box<Error>>;

impl Error {
    pub fn new(span: Span, message: impl Into<String>) -> Box<Error> {
        Box::new(Error {
            message: message.into(),
            span,
            label: String::new(),
            help: None,
            notes: Vec::new(),
            is_known: false,
            is_warning: false,
            is_last: false,
        })
    }

    /// The error of code that depends on something rejected earlier.
    pub fn known(span: Span) -> Box<Error> {
        let mut error = Error::new(span, "this depends on an earlier error");
        error.is_known = true;
        error
    }

    /// Whether the program may be right, and beyond this emulator.
    pub fn is_limit(&self) -> bool {
        self.is_last || self.message.contains("part of the subset")
    }

    pub fn last(mut self: Box<Self>) -> Box<Error> {
        self.is_last = true;
        self
    }

    pub fn warning(mut self: Box<Self>) -> Box<Error> {
        self.is_warning = true;
        self
    }

    pub fn label(mut self: Box<Self>, label: impl Into<String>) -> Box<Error> {
        self.label = label.into();
        self
    }

    pub fn help(mut self: Box<Self>, help: impl Into<String>) -> Box<Error> {
        self.help = Some(help.into());
        self
    }

    pub fn note(mut self: Box<Self>, note: impl Into<String>, span: Span) -> Box<Error> {
        // A chain of instantiations can be long; its first steps are enough.
        if self.notes.len() < 4 {
            self.notes.push((note.into(), span));
        }
        self
    }

    /// Formats the error for the user.
    pub fn render(&self, files: &Files) -> String {
        let kind = if self.is_warning { "warning" } else { "error" };
        let mut text = format!("{kind}: {}\n", self.message);
        show(&mut text, files, self.span, &self.label);
        if let Some(help) = &self.help {
            text.push_str(&format!("  = help: {help}\n"));
        }
        for (note, span) in &self.notes {
            text.push_str(&format!("note: {note}\n"));
            show(&mut text, files, *span, "");
        }
        text
    }
}

/// The errors of a program, each once, in the order they were found.
#[derive(Clone, Debug, Default)]
pub struct Errors(pub Vec<Box<Error>>);

impl Errors {
    /// Adds an error. Returns `Err` if it is the last one.
    pub fn add(&mut self, error: Box<Error>) -> Result<()> {
        // An unknown name is reported where it is used first.
        let is_elsewhere =
            |known: &Error| known.span != error.span && !error.message.starts_with("unknown name ");
        let is_new = |known: &Error| known.message != error.message || is_elsewhere(known);
        if !error.is_known && self.0.len() < MOST_ERRORS && self.0.iter().all(|known| is_new(known)) {
            self.0.push(error.clone());
        }
        if error.is_last || self.0.len() == MOST_ERRORS {
            return Err(Box::new(Error { is_known: true, is_last: true, ..*error }));
        }
        Ok(())
    }

    pub fn render(&self, files: &Files) -> String {
        let mut texts: Vec<String> = self.0.iter().map(|error| error.render(files)).collect();
        match self.0.len() {
            _ if self.0.iter().all(|known| known.is_warning) => {}
            1 => {}
            MOST_ERRORS => texts.push(format!("error: aborting after {MOST_ERRORS} errors\n")),
            count => texts.push(format!("error: aborting due to {count} errors\n")),
        }
        texts.join("\n")
    }
}

impl From<Box<Error>> for Errors {
    fn from(error: Box<Error>) -> Errors {
        Errors(vec![error])
    }
}

fn show(text: &mut String, files: &Files, span: Span, label: &str) {
    let (line, column) = clipped(files.line(span), span.column as usize);
    let margin = span.line.to_string().len();
    let blank = " ".repeat(margin);
    let before: String = line.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let rest = line.chars().count().saturating_sub(column - 1).max(1);
    let carets = "^".repeat((span.length.max(1) as usize).min(rest));
    text.push_str(&format!("{blank}--> {}\n{blank} |\n", files.place(span)));
    text.push_str(&format!("{} | {line}\n{blank} | {before}{carets}", span.line));
    if !label.is_empty() {
        text.push_str(&format!(" {label}"));
    }
    text.push_str(&format!("\n{blank} |\n"));
}

/// The part of a long line around a column, and the column within it.
pub fn clipped(line: &str, column: usize) -> (String, usize) {
    let column = column.max(1);
    let count = line.chars().count();
    if count <= MOST_SHOWN {
        return (line.to_owned(), column);
    }
    let first = (column - 1).saturating_sub(MOST_SHOWN / 2).min(count - MOST_SHOWN);
    let part: String = line.chars().skip(first).take(MOST_SHOWN).collect();
    let start = if first > 0 { "…" } else { "" };
    let end = if first + MOST_SHOWN < count { "…" } else { "" };
    (format!("{start}{part}{end}"), column - first + start.chars().count())
}
