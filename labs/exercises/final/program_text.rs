//! The program as text, whole or function by function.

use super::faults::Fault;
use super::header::header;
use crate::Edit;

const SOURCE: &str = include_str!("program.rs");

/// All that stands between the two marks.
fn reference() -> &'static str {
    let (_, rest) = SOURCE.split_once("// BEGIN\n").expect("tested");
    rest.split_once("// END\n").expect("tested").0
}

/// What stands before the first function.
fn beginning() -> &'static str {
    let text = reference();
    &text[..text.find("\n/// A classifier").expect("tested")]
}

/// Where a function stands, from its `pub fn` to its closing brace.
fn function(text: &str, name: &str) -> std::ops::Range<usize> {
    let start = text.find(&format!("pub fn {name}(")).expect("tested");
    let end = text[start..].find("\n}\n").expect("tested");
    start..start + end + 3
}

/// A text with some pieces of one function replaced.
fn edited(text: &str, place: &str, edits: &[Edit]) -> String {
    let range = function(text, place);
    let mut body = text[range.clone()].to_owned();
    for (from, to) in edits {
        assert_eq!(body.matches(from).count(), 1, "{place}: `{from}` stands in it once");
        body = body.replacen(from, to, 1);
    }
    format!("{}{body}{}", &text[..range.start], &text[range.end..])
}

/// The program of a seed with faults, with the names of its numbers.
pub fn with(seed: u64, faults: impl IntoIterator<Item = &'static Fault>) -> String {
    let text = reference().to_owned();
    let text = faults.into_iter().fold(text, |text, fault| edited(&text, fault.place, fault.edits));
    format!("{}{text}", header(seed))
}

/// One function alone, edited, as a module that compiles by itself.
pub fn alone(place: &str, edits: &[Edit]) -> String {
    let text = edited(reference(), place, edits);
    let function = &text[function(&text, place)];
    // The last function calls others.
    let uses = if place == "fit" {
        "use exercises::assessment::program::{evaluate, keep_best, network, train};\n"
    } else {
        ""
    };
    format!("use exercises::assessment::numbers;\n{uses}{}\n{function}", beginning())
}
