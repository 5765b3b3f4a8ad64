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

/// The lines before the first function.
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

/// The functions in their order.
pub fn names() -> Vec<&'static str> {
    let functions = reference().split("\npub fn ").skip(1);
    functions.map(|rest| rest.split('(').next().unwrap_or_default()).collect()
}

/// A function of the reference, from its `pub fn` to its closing brace.
pub fn code(name: &str) -> &'static str {
    let text = reference();
    &text[function(text, name)]
}

/// The comment above a function, as one paragraph.
pub fn comment(name: &str) -> String {
    let text = reference();
    let above = &text[..function(text, name).start];
    let lines: Vec<&str> = above.lines().rev().map_while(|line| line.strip_prefix("///")).collect();
    lines.into_iter().rev().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The lines above one function that stands alone.
pub fn uses(name: &str) -> String {
    // The last function calls others.
    let others = match name {
        "fit" => "use exercises::assessment::program::{evaluate, keep_best, network, train};\n",
        _ => "",
    };
    format!("use exercises::assessment::numbers;\n{others}{}", beginning())
}

/// One function alone, edited, as a module that compiles by itself.
pub fn alone(name: &str, edits: &[Edit]) -> String {
    let text = edited(reference(), name, edits);
    format!("{}\n{}", uses(name), &text[function(&text, name)])
}
