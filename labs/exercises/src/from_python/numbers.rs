//! Mismatched number types.

use super::results::{between, expected_and_found};
use super::{Mistake, Source};
use crate::compile_error::CompileError;

const INTEGERS: [&str; 13] =
    ["{integer}", "usize", "u64", "u32", "u16", "u8", "i64", "i32", "i16", "i8", "isize", "u128", "i128"];
const FLOATS: [&str; 3] = ["{float}", "f64", "f32"];

pub fn mixed(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    let (first, last) = (source.at(place.start), source.before(place.end)?);
    match error.code() {
        "E0308" => {
            if let Some(edits) = error.suggestion("use a float literal") {
                return Some(Mistake::of(edits));
            }
            let (expected, found) = expected_and_found(error.label());
            let found = match found {
                "" if error.label().ends_with("found integer") => "{integer}",
                "" if error.label().ends_with("found floating-point number") => "{float}",
                found => found,
            };
            converted(source, first..last + 1, found, expected)
        }
        "E0277" => {
            if let Some(operation) = between(error.label(), "no implementation for `", "`") {
                let sign = source.slice(place);
                let (left, right) = operation.split_once(&format!(" {sign} "))?;
                let of_left = || {
                    let start = source.value_start(first.checked_sub(1)?);
                    converted(source, start..first, left, right)
                };
                let of_right = |from: &str, to: &str| {
                    let end = match sign.len() == 2 && sign.ends_with('=') {
                        true => source.next(last + 1, &[";"])?,
                        false => source.value_end(last + 1) + 1,
                    };
                    converted(source, last + 1..end, from, to)
                };
                // The integer becomes a float; of two integers, the second is converted to the type of the first.
                return match FLOATS.contains(&right) {
                    true => of_left(),
                    false => of_right(right, left),
                };
            }
            if let Some(from) = between(&error.message, "Scalar: From<", ">") {
                return converted(source, first..last + 1, from, "f64");
            }
            let index = between(&error.message, "cannot be indexed by `", "`")?;
            converted(source, first..last + 1, index, "usize")
        }
        _ => None,
    }
}

/// Converts a value from one number type to another.
fn converted(source: &Source, value: std::ops::Range<usize>, from: &str, to: &str) -> Option<Mistake> {
    let is_number = |name: &str| INTEGERS.contains(&name) || FLOATS.contains(&name);
    if !is_number(from) || !is_number(to) || from == to {
        return None;
    }
    let to_float = FLOATS.contains(&to);
    let last = value.end.checked_sub(1)?;
    let mut literal = last;
    // The number first assigned to a name.
    if value.len() == 1 && source.is_name(last) && from.starts_with('{') {
        let bound = source.binding(source.word(last), last)?;
        literal = bound.end.checked_sub(1)?;
        if bound.len() != 1 {
            return None;
        }
    }
    let word = source.word(literal);
    if word.starts_with(|first: char| first.is_ascii_digit()) && value.len() == 1 {
        let range = source.start(literal)..source.end(literal);
        let digits = |text: &str| text.chars().all(|letter| letter.is_ascii_digit() || letter == '_');
        return match (to_float, word.split_once('.')) {
            (true, None) if digits(word) => Some(Mistake::at(range.end).edit(range.end, ".0")),
            (false, Some((whole, rest))) if digits(whole) && rest.trim_matches('0').is_empty() => {
                Some(Mistake::at(range.start).replace(range, whole))
            }
            _ => None,
        };
    }
    let to = if to == "{float}" { "f64" } else { to };
    if to.starts_with('{') || (from == "{float}" && value.len() > 1) {
        return None;
    }
    let (start, end) = (source.start(value.start), source.end(last));
    let is_one = source.value_end(value.start) >= last;
    Some(match is_one {
        true => Mistake::at(start).edit(end, format!(" as {to}")),
        false => Mistake::at(start).edit(start, "(").edit(end, format!(") as {to}")),
    })
}
