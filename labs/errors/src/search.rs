//! Which kinds of error are in a text, and which of them is to blame.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::text::squeezed;
use crate::{KINDS, Kind, Pasted};

/// What stands between two parts of a pattern has at most so many bytes.
const GAP: usize = 240;

/// Python's sentence between an exception and the one raised `from` it.
const DIRECT_CAUSE: &str = "The above exception was the direct cause of the following exception";
/// Its sentence between an exception and another that came up while it was handled.
const DURING: &str = "During handling of the above exception, another exception occurred";

/// The heading of a traceback, squeezed.
const TRACEBACK: &str = "traceback(mostrecentcalllast)";

/// The kind to explain, and the others in the text.
///
/// The last exception is what ended the program. But where Python says that another was its direct cause, it is that one; and what
/// only follows from an error, such as a message that another rank has gone, is passed over for the error itself.
pub fn search(pasted: &Pasted) -> Option<(&'static Kind, Vec<&'static Kind>)> {
    let last = |patterns: &Vec<Vec<String>>| {
        patterns.iter().filter_map(|parts| last_match(parts, &pasted.squeezed)).max()
    };
    let kinds = KINDS.iter().zip(&*PATTERNS).filter(|(kind, _)| kind.sure.is_none_or(|sure| sure(pasted)));
    let mut found: Vec<(usize, &'static Kind)> =
        kinds.filter_map(|(kind, patterns)| Some((last(patterns)?, kind))).collect();
    found.sort_by_key(|(at, _)| *at);
    let (start, end) = to_blame(&pasted.squeezed);
    // A warning is not what ended the program.
    let is_warning = |at: usize| pasted.squeezed[..at].ends_with("warning:");
    let causes = || found.iter().filter(|(at, kind)| !kind.follows && !is_warning(*at));
    let within = |(at, _): &&(usize, &'static Kind)| (start..end).contains(at);
    let (at, last) =
        causes().rfind(within).or_else(|| causes().next_back()).or_else(|| found.last()).copied()?;
    let before = found.iter().map(|(_, kind)| *kind).find(|kind| last.caused_by.contains(&kind.id));
    let kind = before.unwrap_or(last);
    if is_warning(at) && pasted.squeezed[at..].contains(TRACEBACK) {
        // The error is another, and not known.
        return None;
    }
    let also = found.iter().map(|(_, kind)| *kind).filter(|other| other.id != kind.id);
    Some((kind, also.collect()))
}

/// Where the exceptions stand that began a chain of direct causes which ends with the last one.
fn to_blame(text: &str) -> (usize, usize) {
    let (cause, during) = (squeezed(DIRECT_CAUSE), squeezed(DURING));
    let mut links: Vec<(usize, usize, bool)> =
        text.match_indices(&cause).map(|(at, found)| (at, at + found.len(), true)).collect();
    links.extend(text.match_indices(&during).map(|(at, found)| (at, at + found.len(), false)));
    links.sort_unstable();
    let mut end = text.len();
    for (at, after, is_cause) in links.into_iter().rev() {
        if !is_cause {
            return (after, end);
        }
        end = at;
    }
    (0, end)
}

/// What each kind is known by, in the parts that must follow each other.
static PATTERNS: LazyLock<Vec<Vec<Vec<String>>>> = LazyLock::new(|| {
    let parts = |pattern: &&str| pattern.split('*').map(squeezed).collect();
    KINDS.iter().map(|kind| kind.known_by.iter().map(parts).collect()).collect()
});

/// Where the last text begins in which these parts follow each other.
fn last_match(parts: &[String], text: &str) -> Option<usize> {
    let (first, others) = parts.split_first()?;
    let starts = text.rmatch_indices(first.as_str()).map(|(at, _)| at);
    let follows = |at: &usize| {
        let mut from = at + first.len();
        others.iter().all(|part| {
            let mut end = (from + GAP).min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let found = text[from..end].find(part.as_str());
            found.map(|at| from += at + part.len()).is_some()
        })
    };
    // What does not follow the last hundred does not follow the thousandth either: a log may be long.
    starts.take(100).find(follows)
}

/// Kinds whose message has words in common with a text that is none of them, the nearest first.
pub fn near(text: &str) -> Vec<&'static Kind> {
    let all: Vec<BTreeSet<String>> = KINDS.iter().map(|kind| words(kind.message)).collect();
    let pasted = words(&Pasted::new(text).words);
    let rarity = |word: &String| 1.0 / all.iter().filter(|words| words.contains(word)).count().max(1) as f32;
    let mut scored: Vec<(f32, &Kind)> = Vec::new();
    for (kind, words) in KINDS.iter().zip(&all) {
        let whole: f32 = words.iter().map(rarity).sum();
        let shared: f32 = words.intersection(&pasted).map(rarity).sum();
        if words.intersection(&pasted).count() >= 2 && shared / whole > 0.25 {
            scored.push((shared / whole, kind));
        }
    }
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    scored.into_iter().map(|(_, kind)| kind).take(3).collect()
}

/// The words that tell one message from another.
fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.len() > 2).map(str::to_ascii_lowercase).collect()
}
