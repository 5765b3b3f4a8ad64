//! Files, places in them, and errors that show a place.

pub mod condition;
pub mod headers;
pub mod lexer;
pub mod preprocessor;

/// A place in a file. Lines and columns count from 1.
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
    /// The number of a file. The host's pass reads the same files as the device's.
    pub fn add(&mut self, name: &str, text: &str) -> u32 {
        if let Some(known) = self.0.iter().position(|file| file.name == name && file.text == text) {
            return known as u32;
        }
        self.0.push(File { name: name.to_owned(), text: text.to_owned() });
        self.0.len() as u32 - 1
    }

    /// `my.cu:3:5`
    pub fn place(&self, span: Span) -> String {
        let name = self.0.get(span.file as usize).map_or("?", |file| file.name.as_str());
        format!("{name}:{}:{}", span.line, span.column)
    }

    pub fn line(&self, span: Span) -> &str {
        let file = self.0.get(span.file as usize);
        file.and_then(|file| file.text.lines().nth(span.line.max(1) as usize - 1)).unwrap_or("")
    }
}

/// Why a text is rejected.
#[derive(Clone, Debug)]
pub struct Error {
    pub message: String,
    pub span: Span,
    /// Stands under the place.
    pub label: String,
    pub help: Option<String>,
    /// Where a template was instantiated, and the like.
    pub notes: Vec<(String, Span)>,
}

pub type Result<T> = std::result::Result<T, Box<Error>>;

impl Error {
    pub fn new(span: Span, message: impl Into<String>) -> Box<Error> {
        Box::new(Error { message: message.into(), span, label: String::new(), help: None, notes: Vec::new() })
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
        // A chain of instantiations can be long; its ends say enough.
        if self.notes.len() < 4 {
            self.notes.push((note.into(), span));
        }
        self
    }

    /// The text that a user sees, as rustc would write it.
    pub fn render(&self, files: &Files) -> String {
        let mut text = format!("error: {}\n", self.message);
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

fn show(text: &mut String, files: &Files, span: Span, label: &str) {
    let line = files.line(span);
    let margin = span.line.to_string().len();
    let blank = " ".repeat(margin);
    let before: String =
        line.chars().take(span.column as usize - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let rest = line.chars().count().saturating_sub(span.column as usize - 1).max(1);
    let carets = "^".repeat((span.length.max(1) as usize).min(rest));
    text.push_str(&format!("{blank}--> {}\n{blank} |\n", files.place(span)));
    text.push_str(&format!("{} | {line}\n{blank} | {before}{carets}", span.line));
    if !label.is_empty() {
        text.push_str(&format!(" {label}"));
    }
    text.push_str(&format!("\n{blank} |\n"));
}
