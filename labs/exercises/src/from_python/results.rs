//! Mistakes with results: `?` and `Ok`.

use std::ops::Range;

use super::{Mistake, Source};
use crate::compile_error::CompileError;

/// A value is still inside a `Result`.
pub fn missing(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    let (first, last) = (source.at(place.start), source.before(place.end)?);
    let whole = first..last + 1;
    match error.code() {
        "E0308" => mismatched(error, source, whole),
        "E0369" => {
            let of_results = error.labels().filter(|(_, label)| is_result(label));
            let mistakes = of_results.filter_map(|(range, _)| {
                taken_out(source, source.at(range.start)..source.before(range.end)? + 1)
            });
            mistakes.reduce(Mistake::and)
        }
        "E0277" => bound(error, source, whole),
        "E0605" if is_result(between(&error.message, "cast: `", "`")?) => {
            let cast = whole.clone().rev().find(|token| source.word(*token) == "as")?;
            taken_out(source, first..cast)
        }
        "E0529" if is_result(between(&error.message, "found `", "`")?) => pattern(source, whole, None),
        // A method, a field, or an index on a value.
        "E0599" | "E0609" | "E0610" | "E0615" | "E0608"
            if error.message.contains("enum `std::result::Result<")
                || error.message.contains("type `std::result::Result<")
                || error.message.contains("reference `&std::result::Result<") =>
        {
            let end = if source.word(first) == "[" { first } else { first.checked_sub(1)? };
            let value = source.value_start(end.checked_sub(1)?);
            taken_out(source, value..end).or_else(|| item_of_list(source, value))
        }
        "E0600" if is_result(between(&error.message, "to type `", "`")?) => {
            taken_out(source, first + 1..whole.end)
        }
        _ => None,
    }
}

/// Whether a type, or a reference to one, is an unhandled `Result`.
pub fn is_result(of_type: &str) -> bool {
    let of_type = of_type.trim_start_matches('&').trim_start_matches("mut ");
    // `?` works only on errors of this crate.
    let is_ours = of_type.ends_with(", Error>") || of_type.ends_with(", todevice::Error>");
    is_ours && of_type.trim_start_matches("std::result::").starts_with("Result<")
}

/// The text between two delimiters.
pub fn between<'a>(text: &'a str, from: &str, until: &str) -> Option<&'a str> {
    Some(text.split_once(from)?.1.split_once(until)?.0)
}

/// The expected and the found type of a type mismatch.
pub fn expected_and_found(label: &str) -> (&str, &str) {
    let quoted = |from| between(label, from, "`").unwrap_or_default();
    (quoted("expected `"), quoted("found `"))
}

fn mismatched(error: &CompileError, source: &Source, place: Range<usize>) -> Option<Mistake> {
    let (expected, found) = expected_and_found(error.label());
    let holds_results = |list: &str| list.trim_start_matches('&').starts_with("Vec<Result<");
    if holds_results(found) && !holds_results(expected) {
        let pushed =
            error.labels().find(|(_, label)| label.starts_with("this argument has type `std::result::"));
        return match pushed {
            Some((range, _)) => taken_out(source, source.at(range.start)..source.before(range.end)? + 1),
            None => pushed_to(source, place.end.checked_sub(1)?),
        };
    }
    match (is_result(expected), is_result(found)) {
        (false, true) if ["Ok", "Err"].contains(&source.word(place.start)) => None,
        (false, true) => {
            let mistake = taken_out(source, place.clone())?;
            // The value of a statement at the end of a block is unused.
            match (expected, source.word(place.end)) {
                ("()", "}") => Some(mistake.edit(source.end(place.end - 1), ";")),
                _ => Some(mistake),
            }
        }
        (true, false) => {
            let before = place.start.checked_sub(1)?;
            let of_item = error.labels().any(|(_, label)| label.contains("iterator with items of type"));
            let is_tuple = between(error.label(), "expected `Result<[", ";").is_some();
            match source.word(before) {
                "let" => pattern(source, place, is_tuple.then_some("[")),
                "for" if of_item => pattern(source, place, is_tuple.then_some("[")),
                // A result compared with a number.
                "<" | ">" => taken_out(source, source.value_start(before.checked_sub(1)?)..before),
                "=" if ["=", "!", "<", ">"].contains(&source.word(before.checked_sub(1)?)) => {
                    taken_out(source, source.value_start(before.checked_sub(2)?)..before - 1)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Unwraps the values pushed to a list that should not contain results.
fn pushed_to(source: &Source, list: usize) -> Option<Mistake> {
    let is_push = |token: &usize| source.reads(*token, &[source.word(list), ".", "push", "("]);
    let push = (0..source.len()).find(is_push).filter(|_| source.is_name(list))?;
    taken_out(source, source.arguments(push + 3).into_iter().next()?)
}

/// For a closure parameter that takes the items of a list, unwraps the values pushed to the list.
fn item_of_list(source: &Source, name: usize) -> Option<Mistake> {
    let is_bound = |token: &usize| source.reads(*token, &["|", source.word(name), "|"]);
    let closure = (0..name).rev().find(is_bound)?;
    pushed_to(source, source.value_start(source.around(closure)?.checked_sub(1)?))
}

/// A value of a type was made without `?`, and used where the type itself is required.
fn made(source: &Source, of_type: &str) -> Option<Mistake> {
    let name = of_type.rsplit("::").next()?;
    let is_made = |token: &usize| {
        let call = source.reads(*token, &[name, ":", ":"]) && source.word(token + 4) == "(";
        call && source.word(source.close(token + 4) + 1) != "?"
    };
    let mut made = (0..source.len()).filter(is_made);
    let (first, other) = (made.next()?, made.next());
    let end = source.end(source.close(first + 4));
    other.is_none().then(|| Mistake::at(end).edit(end, "?"))
}

/// An operand, an argument, or something to print.
fn bound(error: &CompileError, source: &Source, place: Range<usize>) -> Option<Mistake> {
    if let Some(operation) = between(error.label(), "no implementation for `", "`") {
        let sign = source.tokens(place.clone());
        let (left, right) = operation.split_once(&format!(" {sign} "))?;
        let of_left = || taken_out(source, source.value_start(place.start.checked_sub(1)?)..place.start);
        let of_right = || {
            let end = match sign.ends_with('=') && sign.len() == 2 {
                true => source.next(place.end, &[";"])?,
                false => source.value_end(place.end) + 1,
            };
            taken_out(source, place.end..end)
        };
        return match (is_result(left), is_result(right)) {
            (true, true) => Some(of_left()?.and(of_right()?)),
            (true, false) => of_left(),
            (false, true) => of_right(),
            _ => None,
        };
    }
    // `StateDict::try_from(dict)`: the error is at the type.
    if ["TryFrom<std::result::Result<", "TryFrom<&std::result::Result<"]
        .iter()
        .any(|words| error.message.contains(words))
    {
        let call = place.end + 3;
        let argument = source.arguments(call).into_iter().next().filter(|_| source.word(call) == "(")?;
        return taken_out(source, argument);
    }
    if let Some(of_type) = between(&error.message, "the trait bound `std::result::Result<", ",") {
        return made(source, of_type);
    }
    // A loop over a reference to a result.
    if error.message.contains("values that implement `Try`")
        && error.label().contains("cannot be applied to type `&")
    {
        let list = source.list_of(place.start).filter(|list| source.reads(*list, &["&"]))?;
        return taken_out(source, list..list + 2);
    }
    let is_converted =
        ["From<std::result::Result<", "Into<std::result::Result<", "From<&std::result::Result<"];
    let is_call = source.slice(error.place()).contains("::try_from(");
    if !is_call && is_converted.iter().any(|words| error.message.contains(words)) {
        return taken_out(source, place);
    }
    let is_printed =
        error.message.starts_with("`std::result::Result<") && error.message.contains("fmt::Display`");
    if is_printed {
        let text = source.slice(error.place());
        return match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            Some(name) => taken_out(source, source.binding(name.split(':').next()?, place.start)?),
            None => taken_out(source, place),
        };
    }
    None
}

/// Unwraps the value of some tokens: there, or where its name is bound.
fn taken_out(source: &Source, value: Range<usize>) -> Option<Mistake> {
    let mut value = value;
    // Longer chains of names are rare.
    for _ in 0..3 {
        let is_whole = source.value_end(value.start) + 1 >= value.end;
        while is_whole && ["&", "*", "mut"].contains(&source.word(value.start)) {
            value.start += 1;
        }
        let last = value.end.checked_sub(1)?;
        if value.start > last {
            return None;
        }
        if value.len() == 1 && source.is_name(last) {
            match source.binding(source.word(last), last).filter(|bound| bound.end <= last) {
                Some(bound) => value = bound,
                // A loop variable.
                None if source.list_of(last).is_some() => {
                    return Some(Mistake::at(source.end(last)).edit(source.end(last), "?"));
                }
                None => return None,
            }
            continue;
        }
        if source.word(last) == "?" {
            return None;
        }
        let (start, end) = (source.start(value.start), source.end(last));
        // `?` would apply only to the last operand.
        return Some(match source.value_end(value.start) < last {
            true => Mistake::at(end).edit(start, "(").edit(end, ")?"),
            false => Mistake::at(end).edit(end, "?"),
        });
    }
    None
}

/// A pattern that destructures a result: in a `let`, or in a `for`, whose items get a `let` of their own.
fn pattern(source: &Source, place: Range<usize>, bracket: Option<&str>) -> Option<Mistake> {
    let inner = source.tokens(place.start + 1..place.end - 1);
    let text = match bracket {
        Some(_) => format!("[{inner}]"),
        None => source.tokens(place.clone()).to_owned(),
    };
    let range = source.start(place.start)..source.end(place.end - 1);
    match source.word(place.start.checked_sub(1)?) {
        "let" => {
            let equals = source.next(place.end, &["="])?;
            let value = equals + 1..source.next(equals, &[";", "{"])?;
            let mistake = taken_out(source, value)?;
            let is_same = source.slice(range.clone()) == text;
            Some(if is_same { mistake } else { mistake.replace(range, text) })
        }
        "for" => {
            let open = source.next(place.end, &["{"])?;
            let indent = indentation(source, source.start(place.start));
            let line = format!("\n{indent}    let {text} = item?;");
            Some(Mistake::at(range.start).replace(range, "item").edit(source.end(open), line))
        }
        _ => None,
    }
}

/// The indentation of a line.
pub fn indentation<'a>(source: &Source<'a>, byte: usize) -> &'a str {
    let line = source.slice(source.line_range(byte));
    &line[..line.len() - line.trim_start().len()]
}
