//! An error of the compiler, read from its JSON.

use std::ops::Range;

use serde::Deserialize;

/// An error of the compiler. The fields are those of rustc's JSON.
#[derive(Clone, Debug, Deserialize)]
pub struct CompileError {
    pub message: String,
    code: Option<Code>,
    level: String,
    spans: Vec<Span>,
    #[serde(default)]
    children: Vec<CompileError>,
    /// As a terminal shows it.
    #[serde(default)]
    rendered: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Code {
    code: String,
}

/// A place in a file, with what the compiler says about it.
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

/// A place in a text, in bytes, and the text that belongs there.
pub type Edit = (Range<usize>, String);

impl CompileError {
    /// Reads a line of the compiler's output, if it is an error in a file.
    pub fn read(line: &str) -> Option<CompileError> {
        let error: CompileError = serde_json::from_str(line).ok()?;
        (error.level == "error" && error.primary().is_some()).then_some(error)
    }

    /// The file, as it was named to the compiler.
    pub fn file(&self) -> &str {
        self.primary().map_or("", |span| &span.file_name)
    }

    pub fn line(&self) -> u32 {
        self.primary().map_or(0, |span| span.line_start)
    }

    pub fn rendered(&self) -> &str {
        self.rendered.as_deref().unwrap_or(&self.message)
    }

    /// `E0308`, or nothing for an error of grammar.
    pub fn code(&self) -> &str {
        self.code.as_ref().map_or("", |code| &code.code)
    }

    fn primary(&self) -> Option<&Span> {
        self.spans.iter().find(|span| span.is_primary)
    }

    /// Where the error is.
    pub fn place(&self) -> Range<usize> {
        self.primary().map_or(0..0, Span::range)
    }

    /// The compiler's words about that place.
    pub fn label(&self) -> &str {
        self.primary().and_then(|span| span.label.as_deref()).unwrap_or_default()
    }

    /// The other places in the file that it points at, each with what it says there.
    pub fn labels(&self) -> impl Iterator<Item = (Range<usize>, &str)> {
        let others = self.spans.iter().filter(|span| !span.is_primary && span.file_name == self.file());
        others.filter_map(|span| Some((span.range(), span.label.as_deref()?)))
    }

    /// All that the compiler notes below the error.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.children.iter().map(|child| child.message.as_str())
    }

    /// The edits of the file that the compiler suggests with these words.
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
