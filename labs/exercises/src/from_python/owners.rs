//! Ownership mistakes: moved values, `&`, `&mut`, `mut`, and `let`.

use super::results::expected_and_found;
use super::{Mistake, Source};
use crate::compile_error::{CompileError, Edit};

/// A value is used after it was moved.
pub fn moved(error: &CompileError, source: &Source) -> Option<Mistake> {
    // `x * &x`
    if error.code() == "E0505" {
        let first = source.at(error.place().start);
        let is_operand = ["+", "-", "*", "/"]
            .iter()
            .any(|sign| [first.wrapping_sub(1), first + 1].iter().any(|at| source.word(*at) == *sign));
        let at = source.start(first);
        return is_operand.then(|| Mistake::at(at).edit(at, "&"));
    }
    if !["E0382", "E0507"].contains(&error.code()) {
        return None;
    }
    let cloned = error.suggestion("clon").filter(|edits| edits.iter().any(|(_, new)| new == ".clone()"));
    let operator = error.labels().any(|(_, label)| label.contains("moved due to usage in operator"));
    if let (true, Some(edits)) = (operator, &cloned) {
        return lent_to_operator(error, source, edits);
    }
    let borrowed = error.suggestion("borrow").or_else(|| error.suggestion("iterating over a slice"));
    let borrowed = borrowed.filter(|edits| edits.iter().all(|(_, new)| new == "&"));
    if let Some(edits) = borrowed.or(cloned) {
        return Some(Mistake::of(edits));
    }
    if error.code() == "E0507" {
        return None;
    }
    let moved = error.labels().find(|(_, label)| label.starts_with("value moved"));
    Some(Mistake::at(moved.map_or(error.place().start, |(range, _)| range.start)))
}

/// Operators accept `&x` as well as `x`.
fn lent_to_operator(error: &CompileError, source: &Source, cloned: &[Edit]) -> Option<Mistake> {
    let first = source.value_start(source.before(cloned.first()?.0.start)?);
    let at = source.start(first);
    let mistake = Mistake::at(at).edit(at, "&");
    let again = error.place();
    let is_operand = error.label().contains("used here after move")
        && ["+", "-", "*", "/"].contains(&source.word(source.at(again.start).checked_sub(1)?));
    Some(if is_operand { mistake.edit(again.start, "&") } else { mistake })
}

/// A value is passed where a reference is expected.
pub fn not_lent(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    match error.code() {
        "E0308" | "E0277" => {}
        _ => return None,
    }
    let borrowed = error.suggestion("consider borrowing here");
    if let Some(edits) = borrowed.or_else(|| error.suggestion("always have a known size")) {
        return edits.iter().all(|(_, new)| new == "&").then(|| Mistake::of(edits));
    }
    if error.code() == "E0277" && error.message.contains("Scalar: From<todevice::Tensor>") {
        return Some(Mistake::at(place.start).edit(place.start, "&"));
    }
    // `Tensor::zeros([2, 3])`
    let is_sizes = error.message.contains("is neither `&[usize]`");
    if is_sizes && ["`[", "`Vec<usize>"].iter().any(|owned| error.message.starts_with(owned)) {
        return Some(Mistake::at(place.start).edit(place.start, "&"));
    }
    // `StateDict::try_from(dict)`: the error is at the type.
    let is_there =
        error.notes().any(|note| note.contains("but trait `TryFrom<&") || note.contains("but trait `From<&"));
    let call = source.before(place.end).filter(|_| !error.message.contains("Result<"))? + 1;
    let from = ["from", "try_from"].contains(&source.word(call + 2));
    (is_there && from && source.reads(call, &[":", ":"]) && source.word(call + 3) == "(").then(|| {
        let at = source.end(call + 3);
        Mistake::at(at).edit(at, "&")
    })
}

/// A reference is passed to a function that takes the value, such as options.
pub fn lent(error: &CompileError, _: &Source) -> Option<Mistake> {
    let edits = error.suggestion("consider removing the borrow").filter(|_| error.code() == "E0308")?;
    edits.iter().all(|(_, new)| new.is_empty()).then(|| Mistake::of(edits))
}

/// A value is passed where a mutable reference is expected.
pub fn not_lent_mutably(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    match error.code() {
        "E0308"
            if error.label() == "types differ in mutability"
                && source.slice(place.clone()).starts_with('&') =>
        {
            Some(Mistake::at(place.start).edit(place.start + 1, "mut "))
        }
        "E0308" => error.suggestion("consider mutably borrowing here").map(Mistake::of),
        "E0596" | "E0594" if error.message.contains("behind a `&` reference") => {
            error.suggestion("to be a mutable reference").map(Mistake::of)
        }
        _ => None,
    }
}

/// A variable is changed without `mut`.
pub fn not_mutable(error: &CompileError, _: &Source) -> Option<Mistake> {
    if !["E0384", "E0594", "E0596"].contains(&error.code()) {
        return None;
    }
    let edits = error.suggestion("mutable")?;
    let edits: Vec<Edit> =
        edits.into_iter().filter(|(range, new)| new == "mut " && range.is_empty()).collect();
    (!edits.is_empty()).then(|| Mistake::of(edits))
}

/// Methods that change their receiver.
const CHANGING: [&str; 9] =
    ["push", "insert", "extend", "step", "zero_grad", "update", "scale", "load_state_dict", "next"];

/// A name is assigned without `let`, as in Python.
pub fn undeclared(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    let first = source.at(place.start);
    if error.code() == "E0425" && error.suggestion("introduce a new binding").is_some() {
        return Some(declared(source, first));
    }
    // A function of this name exists.
    if error.code() == "E0070" && source.word(first) == "=" {
        let name = first.checked_sub(1).filter(|name| source.is_name(*name) && source.begins_line(*name))?;
        let is_function = (0..source.len()).any(|token| source.reads(token, &["fn", source.word(name)]));
        return is_function.then(|| declared(source, name));
    }
    // A reference of this name exists, and the new value is not a reference.
    let (expected, found) = expected_and_found(error.label());
    let name = first.checked_sub(2)?;
    let is_assigned = source.word(first - 1) == "=" && source.is_name(name) && source.begins_line(name);
    let start = source.start(name);
    // A function of this name exists.
    let is_function = error.code() == "E0308" && error.label().starts_with("expected fn item");
    let is_reference = error.code() == "E0308" && expected.starts_with('&') && !found.starts_with('&');
    (is_assigned && (is_reference || is_function)).then(|| Mistake::at(start).edit(start, "let "))
}

/// Whether a name holds an owned value rather than a reference, as far as its `let` or its parameter shows.
pub fn is_owned(source: &Source, name: usize) -> bool {
    let word = source.word(name);
    if let Some(value) = source.binding(word, name) {
        return source.word(value.start) != "&";
    }
    let is_parameter = |token: usize| source.word(token) == word && source.reads(token + 1, &[":", "Tensor"]);
    (0..name).rev().take_while(|token| source.word(*token) != "fn").any(is_parameter)
}

/// Adds `let`, or `let mut`, to the assignment of a name.
fn declared(source: &Source, first: usize) -> Mistake {
    let start = source.start(first);
    let name = source.word(first);
    let changes = |at: usize| {
        let (one, two) = (source.word(at + 1), source.word(at + 2));
        source.word(at) == name
            && source.word(at.saturating_sub(1)) != "."
            && match one {
                "=" => two != "=",
                "." => CHANGING.contains(&two),
                _ => ["+", "-", "*", "/"].contains(&one) && two == "=",
            }
    };
    let word = if (first + 1..source.len()).any(changes) { "let mut " } else { "let " };
    let mistake = Mistake::at(start).edit(start, word);
    // Python's empty list.
    let is_empty = source.reads(first + 1, &["=", "[", "]", ";"]);
    match is_empty {
        true => mistake.replace(source.start(first + 2)..source.end(first + 3), "Vec::new()"),
        false => mistake,
    }
}
