//! An explanation as Markdown in paragraphs, for a terminal to wrap.

use crate::{Explained, Kind};

impl Explained {
    /// What is to be said, in paragraphs with the width that each may be indented by: the message, the numbers, what it means, where
    /// to look, what to do, and where to read on.
    pub fn paragraphs(&self) -> Vec<Paragraph> {
        let Explained { kind, numbers, also } = self;
        let mut all = vec![Paragraph::Heading(kind.title())];
        if !numbers.is_empty() {
            all.push(Paragraph::Heading("Your numbers".to_owned()));
            all.extend(numbers.iter().map(|sentence| Paragraph::Text(sentence.clone())));
        }
        all.push(Paragraph::Heading("What it means".to_owned()));
        all.push(Paragraph::Text(kind.meaning.to_owned()));
        all.push(Paragraph::Heading("Where to look".to_owned()));
        all.push(Paragraph::Text(kind.place.to_owned()));
        all.push(Paragraph::Heading("What to do".to_owned()));
        let fixes = kind.fix.iter().enumerate();
        all.extend(fixes.map(|(index, fix)| Paragraph::Item(index + 1, (*fix).to_owned())));
        if let Some(command) = kind.command() {
            all.push(Paragraph::Heading("See it happen".to_owned()));
            all.push(Paragraph::Code(command));
        }
        all.push(Paragraph::Chapters(kind));
        if !also.is_empty() {
            all.push(Paragraph::Heading("In the same text".to_owned()));
            let names: Vec<String> = also.iter().map(|kind| format!("`{}`", kind.id)).collect();
            all.push(Paragraph::Text(format!("There are also errors of the kind {}.", and(&names))));
        }
        all
    }
}

/// A part of an explanation.
pub enum Paragraph {
    Heading(String),
    Text(String),
    Item(usize, String),
    Code(String),
    /// What tells more, with its heading.
    Chapters(&'static Kind),
}

impl Kind {
    /// Its heading: the code, if it has one, and the message.
    pub fn title(&self) -> String {
        match self.code {
            Some(code) => format!("{code}: {}", self.message),
            None => self.message.to_owned(),
        }
    }
}

/// `Chapters 00 and 01 tell more.`, if there are any that do
pub fn chapters(kind: &Kind) -> Option<String> {
    let numbers: Vec<&str> = kind.chapters.iter().map(|page| &page[..2]).collect();
    match numbers.as_slice() {
        [] => None,
        [one] => Some(format!("Chapter {one} tells more.")),
        several => Some(format!("Chapters {} tell more.", and(several))),
    }
}

/// `a, b and c`
pub fn and(parts: &[impl AsRef<str>]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [before @ .., last] => {
            let before: Vec<&str> = before.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", before.join(", "), last.as_ref())
        }
    }
}
