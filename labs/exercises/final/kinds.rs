//! The kinds of faults, and what each of them tests.

/// The kind of harm that a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    Correctness,
    Memory,
    Speed,
    Race,
}

impl Category {
    /// In the order in which a verdict names them, with how many of each a program has.
    pub const ALL: [(Category, usize); 4] =
        [(Category::Correctness, 5), (Category::Memory, 2), (Category::Speed, 3), (Category::Race, 2)];

    pub fn name(self) -> &'static str {
        match self {
            Category::Correctness => "correctness",
            Category::Memory => "memory",
            Category::Speed => "speed",
            Category::Race => "races",
        }
    }
}

/// A kind of fault, which has at least three places in the program.
pub struct Kind {
    pub id: &'static str,
    pub category: Category,
    /// The first words of the objective that it tests, in the chapter of this number.
    pub objective: (&'static str, &'static str),
    /// Where to read again: a page of the book without `.md`, and a heading of it.
    pub section: (&'static str, &'static str),
}

const fn kind(
    id: &'static str,
    category: Category,
    chapter: &'static str,
    objective: &'static str,
    page: &'static str,
    heading: &'static str,
) -> Kind {
    Kind { id, category, objective: (chapter, objective), section: (page, heading) }
}

use Category::{Correctness, Memory, Race, Speed};

#[rustfmt::skip]
pub static KINDS: &[Kind] = &[
    kind("left-behind", Correctness, "02", "Find the one tensor", "02-golden-rule", "The loss"),
    kind("one-card", Correctness, "01", "Find out which GPUs there are", "01-devices", "One line for every machine"),
    kind("eval-mode", Correctness, "04", "Tell `eval()` from `no_grad`", "04-memory", "eval() and no_grad"),
    kind("train-mode", Correctness, "03", "Write a training loop", "03-training-loop", "Evaluation"),
    kind("no-zero-grad", Correctness, "03", "Write a training loop", "03-training-loop", "The loop"),
    kind("zeroed-late", Correctness, "03", "Write a training loop", "03-training-loop", "The loop"),
    kind("clipped-scaled", Correctness, "06", "Notice gradients that vanish", "06-mixed-precision", "Scaling the loss"),
    kind("no-update", Correctness, "06", "Follow a scaler", "06-mixed-precision", "Scaling the loss"),
    kind("unscaled-loss", Correctness, "06", "Notice gradients that vanish", "06-mixed-precision", "Gradients that vanish"),
    kind("softmax-twice", Correctness, "03", "Judge whether a network learns", "03-training-loop", "The same loop for classes"),
    kind("wrong-dim", Correctness, "03", "Judge whether a network learns", "03-training-loop", "Is it learning?"),
    kind("mean-of-means", Correctness, "03", "Judge whether a network learns", "03-training-loop", "Evaluation"),
    kind("last-rows", Correctness, "03", "Write a training loop", "03-training-loop", "Data, model, optimizer"),
    kind("half-a-state", Correctness, "11", "Save what it takes to resume", "11-checkpoints", "Resume"),
    kind("map-location", Correctness, "11", "Read the two errors of a file", "11-checkpoints", "On another machine"),
    kind("not-a-copy", Correctness, "02", "Say what a call of `.to` changes", "02-golden-rule", "What must be kept"),
    kind("not-strict", Correctness, "11", "Save a model, load it on any device", "11-checkpoints", "Save and load"),
    kind("graph-kept", Memory, "04", "Find the loop that keeps too much alive", "04a-when-memory-is-full", "A list of losses"),
    kind("no-grad", Memory, "04", "Tell `eval()` from `no_grad`", "04-memory", "eval() and no_grad"),
    kind("outputs-kept", Memory, "04", "Find the loop that keeps too much alive", "04a-when-memory-is-full", "A list of losses"),
    kind("all-at-once", Memory, "03", "Say what lives on the GPU during training", "03-training-loop", "What lives where"),
    kind("batch-kept", Memory, "04", "Say when a tensor dies", "04-memory", "When does it die?"),
    kind("double", Memory, "04", "Name the owners of a GPU's memory", "04-memory", "Whose bytes?"),
    kind("second-copy", Memory, "04", "Name the owners of a GPU's memory", "11-checkpoints", "To the CPU first"),
    kind("item-each", Speed, "08", "Find the lines of a loop", "08-asynchronous-execution", "Hidden synchronizations"),
    kind("synchronize", Speed, "08", "Find the lines of a loop", "08-asynchronous-execution", "Whodunit"),
    kind("empty-cache", Speed, "04", "Say where dropped memory goes", "04b-allocator", "What the cache saves"),
    kind("made-on-host", Speed, "09", "Follow the bytes of a tensor", "09-feeding-the-gpu", "Part A: the path of a batch"),
    kind("moved-each-time", Speed, "03", "Say which lines move something", "03-training-loop", "What moved"),
    kind("row-by-row", Speed, "01", "Say which kind of work a GPU does faster", "01-devices", "Why a GPU"),
    kind("on-the-host", Speed, "02", "Check that a program trains where", "02-golden-rule", "Model and data"),
    kind("blocking-copy", Speed, "09", "Say what frees the host", "09-feeding-the-gpu", "Part A: the path of a batch"),
    kind("copied-twice", Speed, "03", "Say which lines move something", "03-training-loop", "What moved"),
    kind("full-precision", Speed, "06", "Name what autocast runs", "06-mixed-precision", "Which operation runs in which type"),
    kind("no-wait", Race, "08", "Let copies and computing overlap", "08-asynchronous-execution", "Two streams that overlap"),
    kind("no-record-stream", Race, "09", "Say what the host may not touch", "09-feeding-the-gpu", "Part A: the path of a batch"),
    kind("wrong-way", Race, "08", "Read the report of a data race", "08-asynchronous-execution", "A race, named and cured"),
    kind("event-early", Race, "08", "Read the report of a data race", "08-asynchronous-execution", "A race, named and cured"),
];

impl Kind {
    pub fn find(id: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.id == id)
    }
}
