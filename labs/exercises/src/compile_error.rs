//! Compiler errors, parsed from JSON.

use std::ops::Range;

use serde::Deserialize;

/// A compiler error. The fields are those of rustc's JSON.
#[derive(Clone, Debug, Deserialize)]
pub struct CompileError {
    pub message: String,
    code: Option<Code>,
    level: String,
    spans: Vec<Span>,
    #[serde(default)]
    children: Vec<CompileError>,
    /// The error as a terminal shows it.
    #[serde(default)]
    rendered: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Code {
    code: String,
}

/// A place in a file, with the compiler's label for it.
#[derive(Clone, Debug, Deserialize)]
pub struct Span {
    file_name: String,
    byte_start: usize,
    byte_end: usize,
    line_start: u32,
    is_primary: bool,
    label: Option<String>,
    suggested_replacement: Option<String>,
}

/// A byte range in a text, and its replacement.
pub type Edit = (Range<usize>, String);

impl CompileError {
    /// Parses a line of the compiler's output, if it is an error in a file.
    pub fn read(line: &str) -> Option<CompileError> {
        let error: CompileError = serde_json::from_str(line).ok()?;
        (error.level == "error" && error.primary().is_some()).then_some(error)
    }

    /// The path of the file, as passed to the compiler.
    pub fn file(&self) -> &str {
        self.primary().map_or("", |span| &span.file_name)
    }

    pub fn line(&self) -> u32 {
        self.primary().map_or(0, |span| span.line_start)
    }

    pub fn rendered(&self) -> &str {
        self.rendered.as_deref().unwrap_or(&self.message)
    }

    /// `E0308`, or empty for a syntax error.
    pub fn code(&self) -> &str {
        self.code.as_ref().map_or("", |code| &code.code)
    }

    fn primary(&self) -> Option<&Span> {
        self.spans.iter().find(|span| span.is_primary)
    }

    /// The place of the error.
    pub fn place(&self) -> Range<usize> {
        self.primary().map_or(0..0, Span::range)
    }

    /// The compiler's label for that place.
    pub fn label(&self) -> &str {
        self.primary().and_then(|span| span.label.as_deref()).unwrap_or_default()
    }

    /// The other places in the file that the error refers to, with their labels.
    pub fn labels(&self) -> impl Iterator<Item = (Range<usize>, &str)> {
        let others = self.spans.iter().filter(|span| !span.is_primary && span.file_name == self.file());
        others.filter_map(|span| Some((span.range(), span.label.as_deref()?)))
    }

    /// All the compiler's notes below the error.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.children.iter().map(|child| child.message.as_str())
    }

    /// The edits that the compiler suggests with this message.
    pub fn suggestion(&self, words: &str) -> Option<Vec<Edit>> {
        let edits = |child: &CompileError| -> Vec<Edit> {
            let in_file = child.spans.iter().filter(|span| span.file_name == self.file());
            in_file.filter_map(|span| Some((span.range(), span.suggested_replacement.clone()?))).collect()
        };
        let all: Vec<Edit> =
            self.children.iter().filter(|child| child.message.contains(words)).flat_map(edits).collect();
        (!all.is_empty()).then_some(all)
    }
}

impl Span {
    fn range(&self) -> Range<usize> {
        self.byte_start..self.byte_end
    }
}
