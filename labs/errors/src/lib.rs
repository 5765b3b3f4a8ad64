//! The table of errors: which messages the course knows, what each means, where to look, and what to do.
//!
//! The terminal (`cargo course explain`), the pages under `errors/` in the book, and the box "Paste an error" all read from it. A
//! kind of error has a file in `kinds/` and a line in its list.
//!
//! [`explain`] recognises a message in whatever somebody pastes: [`text`] takes off what a terminal, a notebook or a log has added,
//! [`search`](mod@search) finds the kinds whose words are in it, and decides which of several is to blame.

pub mod kinds;
mod memory;
#[cfg(target_family = "wasm")]
mod module;
mod numbers;
pub mod page;
mod prefix;
mod search;
mod terminal;
mod text;

pub use kinds::KINDS;
pub use search::{near, search};
pub use terminal::{and, chapters};
pub use text::Pasted;

/// A kind of error.
pub struct Kind {
    /// Its name in commands and addresses.
    pub id: &'static str,
    /// The code that this course's reports give it. A code never changes.
    pub code: Option<&'static str>,
    /// PyTorch's own words: the heading of its page.
    pub message: &'static str,
    /// Texts of which one is in every message of this kind. `*` stands for a number, a name or a few words.
    pub known_by: &'static [&'static str],
    /// A further condition, for words that other texts contain too.
    pub sure: Option<fn(&Pasted) -> bool>,
    /// Whether it usually follows from another error, which is then the one to explain.
    pub follows: bool,
    /// Kinds that cause this one if the same text contains them: after them, every call to the GPU fails.
    pub caused_by: &'static [&'static str],
    pub meaning: &'static str,
    /// How to find the line that is to blame.
    pub place: &'static str,
    /// What to do, the most promising first.
    pub fix: &'static [&'static str],
    /// The pages that tell more about it, from the folder of the chapters: `04-memory.md`. None, if no page does.
    pub chapters: &'static [&'static str],
    pub run: Option<Run>,
    /// What follows from the numbers and names in the message.
    pub read: Option<fn(&Pasted) -> Vec<String>>,
}

impl Kind {
    /// What most kinds have in common.
    const NEW: Kind = Kind {
        id: "",
        code: None,
        message: "",
        known_by: &[],
        sure: None,
        follows: false,
        caused_by: &[],
        meaning: "",
        place: "",
        fix: &[],
        chapters: &[],
        run: None,
        read: None,
    };
}

/// A run that prints the error.
pub enum Run {
    /// A section of a lab, in the run of this name, which has these flags.
    Lab { number: &'static str, section: &'static str, run: &'static str, flags: &'static str },
    /// `cargo course explain --run ID`
    Here,
}

impl Kind {
    /// The command that prints the error, if there is one.
    pub fn command(&self) -> Option<String> {
        Some(match self.run.as_ref()? {
            Run::Lab { number, section, flags, .. } => {
                let flags = if flags.is_empty() { String::new() } else { format!("{flags} ") };
                format!("cargo run --bin lab-{number} -- {flags}--section {section}")
            }
            Run::Here => format!("cargo course explain --run {}", self.id),
        })
    }
}

/// What is to be said of a message.
pub struct Explained {
    pub kind: &'static Kind,
    /// Sentences on the numbers in the message.
    pub numbers: Vec<String>,
    /// Other kinds in the same text.
    pub also: Vec<&'static Kind>,
}

/// Explains a text: a kind's name or code, or anything with an error message in it.
pub fn explain(text: &str) -> Option<Explained> {
    let name = text.trim().trim_matches(['[', ']']);
    if let Some(kind) = named(name) {
        return Some(Explained { kind, numbers: Vec::new(), also: Vec::new() });
    }
    let pasted = Pasted::new(text);
    let (kind, also) = search(&pasted).or_else(|| Some((headed(&pasted)?, Vec::new())))?;
    Some(Explained { kind, numbers: kind.read.map_or(Vec::new(), |read| read(&pasted)), also })
}

/// The kind whose heading is all that a text says.
fn headed(pasted: &Pasted) -> Option<&'static Kind> {
    let said = pasted.squeezed.trim_end_matches(['.', '…']);
    let without_class = said.split_once("error:").map_or(said, |(_, message)| message);
    let is = |text: &str| [said, without_class].contains(&text::squeezed(text).as_str());
    KINDS.iter().find(|kind| is(kind.message) || is(&kind.title()))
}

/// A kind by its name or its code.
pub fn named(name: &str) -> Option<&'static Kind> {
    let is = |known: &str| known.eq_ignore_ascii_case(name);
    KINDS.iter().find(|kind| is(kind.id) || kind.code.is_some_and(is))
}
