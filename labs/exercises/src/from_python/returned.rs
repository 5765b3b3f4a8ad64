//! Return values of functions, and unnecessary `?`.

use super::results::{expected_and_found, indentation, is_result};
use super::{Mistake, Source};
use crate::compile_error::{CompileError, Edit};

/// The value of a function or a closure is not a `Result`, but has to be.
pub fn not_returned(error: &CompileError, source: &Source) -> Option<Mistake> {
    if let Some(edits) = error.suggestion("wrapping the expression in `Ok`") {
        return Some(Mistake::of(edits));
    }
    let (first, last) = (source.at(error.place().start), source.before(error.place().end)?);
    let (expected, found) = expected_and_found(error.label());
    if error.code() == "E0308"
        && is_result(expected)
        && found == "()"
        && source.tokens(first..last + 1) == "()"
    {
        return Some(Mistake::of(tail(source, first, last + 1)));
    }
    // A loop is the last expression, and has no value.
    if error.code() == "E0308"
        && is_result(expected)
        && found == "()"
        && ["for", "while"].contains(&source.word(first))
    {
        let close = source.close(source.next(first, &["{"])?) + 1;
        if source.word(close) != "}" || !ends_function(source, close) {
            return None;
        }
        let end = source.start(close);
        let indent = indentation(source, end);
        let mistake = Mistake::at(end);
        return Some(match expected.starts_with("Result<()") && source.begins_line(close) {
            true => mistake.edit(end, format!("    Ok(())\n{indent}")),
            false => mistake,
        });
    }
    let is_collected = error.message.starts_with("a value of type `std::result::Result<");
    if error.code() == "E0277" && is_collected && error.message.contains("cannot be built from an iterator") {
        let end = source.value_end(first) + 1;
        let start = source.value_start(end - 1);
        return (source.word(end) == "}").then(|| Mistake::of(tail(source, start, end)));
    }
    if error.code() == "E0308"
        && error.labels().any(|(_, label)| label.starts_with("implicitly returns `()`"))
    {
        return if is_result(expected) { no_value(error, source, expected) } else { None };
    }
    if error.code() != "E0277" || !error.message.starts_with("the `?` operator can only be used in a") {
        return None;
    }
    let (around, _) = error.labels().find(|(_, label)| label.starts_with("this function should return"))?;
    let at = source.at(around.start);
    if error.message.contains("in a closure") {
        return closure(source, at);
    }
    let open = source.next(at, &["{"])?;
    let close = source.close(open);
    let arrow = (at..open).find(|token| source.reads(*token, &["-", ">"]));
    let Some(arrow) = arrow else {
        let is_ended = [";", "}", "{"].contains(&source.word(close.checked_sub(1)?));
        let mistake = Mistake::at(source.end(open - 1));
        return Some(match is_ended {
            true => {
                mistake.edit(source.end(open - 1), " -> Result<()>").edit(source.start(close), "    Ok(())\n")
            }
            false => mistake,
        });
    };
    let returned = source.start(arrow + 2)..source.end(open - 1);
    let text = format!("Result<{}>", source.slice(returned.clone()));
    Some(Mistake::at(returned.start).replace(returned, text).all(tail(source, open + 1, close)))
}

/// Whether a brace closes the body of a function.
fn ends_function(source: &Source, close: usize) -> bool {
    let open = source.open(close);
    let ends = |token: &usize| [";", "{", "}"].contains(&source.word(*token));
    let begin = (0..open).rev().find(ends).map_or(0, |token| token + 1);
    (begin..open).any(|token| source.word(token) == "fn")
}

/// The block ends without a value.
fn no_value(error: &CompileError, source: &Source, expected: &str) -> Option<Mistake> {
    let open = source.next(source.at(error.place().start), &["{"])?;
    let close = source.close(open);
    let last = close.checked_sub(1)?;
    let end = source.start(close);
    if let Some(edits) = error.suggestion("remove this semicolon") {
        return Some(Mistake::of(edits));
    }
    if expected.starts_with("Result<()") {
        let indent = indentation(source, end);
        let line = match source.begins_line(close) {
            true => format!("{}Ok(())\n{indent}", "    "),
            false => "Ok(()) ".to_owned(),
        };
        return Some(Mistake::at(end).edit(end, line));
    }
    // The last statement may be the intended value.
    let begin = (open..last).rev().find(|token| [";", "}", "{"].contains(&source.word(*token)))? + 1;
    let is_value =
        source.word(last) == ";" && source.word(begin) != "let" && source.next(begin, &["="]).is_none();
    if !is_value {
        return Some(Mistake::at(end));
    }
    let value = source.tokens(begin..last);
    let value = if source.word(last - 1) == "?" {
        value.trim_end_matches('?').to_owned()
    } else {
        format!("Ok({value})")
    };
    let range = source.start(begin)..source.end(last);
    Some(Mistake::at(range.start).replace(range, value))
}

/// A closure with a `?` in it that does not return a result.
fn closure(source: &Source, bars: usize) -> Option<Mistake> {
    let bars = if source.word(bars) == "move" { bars + 1 } else { bars };
    let body = (bars + 1..source.len()).find(|token| source.word(*token) == "|")? + 1;
    let edits = match source.word(body) {
        "{" => tail(source, body + 1, source.close(body)),
        _ => {
            let around = source.around(bars)?;
            let end = source.next(body, &[",", ";"]).unwrap_or(source.close(around));
            tail(source, body, end)
        }
    };
    let at = edits.first()?.0.start;
    Some(Mistake::at(at).all(edits))
}

/// Turns the value between these tokens into a result: by removing its `?`, or by wrapping it in `Ok`.
fn tail(source: &Source, from: usize, end: usize) -> Vec<Edit> {
    let Some(last) = end.checked_sub(1).filter(|last| *last >= from) else { return Vec::new() };
    let mut begin = from;
    let mut at = from;
    while at < end {
        match source.word(at) {
            ";" => begin = at + 1,
            "(" | "[" => at = source.close(at),
            "{" => {
                at = source.close(at);
                // If more follows, it is a loop or a condition without a value.
                if at < last && ![".", "?", "else"].contains(&source.word(at + 1)) {
                    begin = at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    if begin >= end || source.word(begin) == "Ok" {
        return Vec::new();
    }
    if source.word(last) == "?" && source.value_end(begin) == last {
        return vec![(source.start(last)..source.end(last), String::new())];
    }
    vec![
        (source.start(begin)..source.start(begin), "Ok(".to_owned()),
        (source.end(last)..source.end(last), ")".to_owned()),
    ]
}

/// A `?` after a call that cannot fail.
pub fn needless(error: &CompileError, source: &Source) -> Option<Mistake> {
    let is_it = error.code() == "E0277"
        && error.message.starts_with("the `?` operator can only be applied to values that implement `Try`");
    let last = source.before(error.place().end)?;
    let call = last.checked_sub(1)?;
    if !is_it || source.word(last) != "?" || source.word(call) != ")" {
        return None;
    }
    let is_call = source.is_name(source.open(call).checked_sub(1)?);
    let range = source.start(last)..source.end(last);
    is_call.then(|| Mistake::at(range.start).replace(range, ""))
}
