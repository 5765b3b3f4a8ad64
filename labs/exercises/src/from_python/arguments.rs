//! Keyword arguments, and option structs.

use std::ops::Range;

use super::names::constructed;
use super::{Mistake, Source};
use crate::compile_error::CompileError;

/// The option struct of each constructor.
const OPTIONS: [(&str, &str); 6] = [
    ("SGD", "SGDOptions"),
    ("Adam", "AdamOptions"),
    ("AdamW", "AdamWOptions"),
    ("DataLoader", "DataLoaderOptions"),
    ("GradScaler", "GradScalerOptions"),
    ("to", "ToOptions"),
];

/// Functions that take their options in a tuple with the last argument.
const PAIRED: [&str; 15] = [
    "zeros",
    "ones",
    "empty",
    "full",
    "arange",
    "linspace",
    "eye",
    "rand",
    "randn",
    "randint",
    "cross_entropy",
    "nll_loss",
    "conv2d",
    "max_pool2d",
    "avg_pool2d",
];

/// `f(last, options)`.
pub fn unpaired(error: &CompileError, source: &Source) -> Option<Mistake> {
    let open = source.next(source.at(error.place().start), &["("])?;
    let arguments = source.arguments(open);
    let (given, [.., last, options]) = (arguments.len(), &arguments[..]) else { return None };
    let is_one_more = error.message.contains(&format!("{given} arguments were supplied"))
        && error.message.contains(&format!("takes {} argument", given - 1));
    if error.code() != "E0061" || !is_one_more || !PAIRED.contains(&source.word(open.checked_sub(1)?)) {
        return None;
    }
    Some(paired(source, last, source.tokens(options.clone()), options.end))
}

/// Wraps an argument and the tokens after it, up to a token, in a tuple.
fn paired(source: &Source, last: &Range<usize>, options: &str, end: usize) -> Mistake {
    let range = source.start(last.start)..source.end(end - 1);
    // Options are passed by value; a tensor that gives the dtype and device is passed by reference.
    let options = match options.strip_prefix('&') {
        Some(value) if value.to_lowercase().contains("options") => value,
        _ => options,
    };
    Mistake::at(range.start).replace(range, format!("({}, {options})", source.tokens(last.clone())))
}

/// `f(name=value)`.
pub fn keyword(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    let first = source.at(place.start);
    if error.code().is_empty() {
        let edits = error.suggestion("replace equals symbol with a colon")?;
        let (range, _) = edits.first()?;
        let sign = source.at(range.start);
        let range = source.end(sign.checked_sub(1)?)..source.start(sign + 1);
        return Some(Mistake::at(range.start).replace(range, ": "));
    }
    // `..default()`, and `..Default`.
    let is_rest = source.reads(first.wrapping_sub(2), &[".", "."]);
    let is_path = source.word(first + 1) == ".";
    if is_rest
        && !is_path
        && ["default", "Default"].contains(&source.word(first))
        && error.code().starts_with("E042")
    {
        let end = if source.word(first + 1) == "(" { source.end(first + 2) } else { source.end(first) };
        return Some(Mistake::at(place.start).replace(place.start..end, "Default::default()"));
    }
    if error.code() == "E0063" {
        return all_fields(error, source, first);
    }
    let is_set = |token: usize| source.word(token + 1) == "=" && source.word(token + 2) != "=";
    if !["E0423", "E0425", "E0061", "E0308", "E0277"].contains(&error.code()) {
        return None;
    }
    // The error covers either the name or all of `name=value`.
    let is_whole = error.code() != "E0425" && source.before(place.end)? > first + 1;
    let open = match source.is_name(first) && is_set(first) && (error.code() == "E0425" || is_whole) {
        true => source.around(first)?,
        false if error.code() == "E0423" => source.next(first, &["("])?,
        false => return None,
    };
    let arguments = source.arguments(open);
    let set = arguments.iter().find(|argument| source.is_name(argument.start) && is_set(argument.start))?;
    if source.word(open) != "(" {
        return None;
    }
    Some(positional(source, open, &arguments, set.clone()))
}

/// A call without keywords.
fn positional(source: &Source, open: usize, arguments: &[Range<usize>], set: Range<usize>) -> Mistake {
    let at = source.start(set.start);
    let name = |argument: &Range<usize>| {
        source.word(argument.start + 1) == "=" && source.word(argument.start + 2) != "="
    };
    let fields = |first: &Range<usize>| -> String {
        let given = arguments.iter().filter(|argument| argument.start >= first.start);
        let given = given.map(|argument| {
            let value = source.tokens(argument.start + 2..argument.end);
            format!("{}: {}, ", source.word(argument.start), python_value(value))
        });
        given.collect()
    };
    let callee = source.word(open.saturating_sub(1));
    let of_type = source.word(open.saturating_sub(4));
    let options =
        OPTIONS.iter().find(|(known, _)| *known == callee || (callee == "new" && *known == of_type));
    let last = arguments.last().map_or(open, |argument| argument.end - 1);
    let range = at..source.end(last);
    // `SGDOptions(lr=0.1)`
    if callee.ends_with("Options") {
        let range = source.start(open)..source.end(source.close(open));
        return Mistake::at(at).replace(range, format!(" {{ {}..Default::default() }}", fields(&set)));
    }
    match options {
        Some((_, "ToOptions")) => {
            let device = arguments.first().filter(|argument| !name(argument));
            let device = device.map_or(String::new(), |argument| {
                format!("device: Some({}), ", source.tokens(argument.clone()))
            });
            let range = source.start(open + 1)..source.end(last);
            let options = format!("todevice::ToOptions {{ {device}{}..Default::default() }}", fields(&set));
            Mistake::at(at).replace(range, options)
        }
        Some((known, options)) => {
            let mistake = Mistake::at(at)
                .replace(range, format!("{options} {{ {}..Default::default() }}", fields(&set)));
            // `optim::SGD(…, lr=0.1)`
            if *known == callee { mistake.all(constructed(source, open - 1)) } else { mistake }
        }
        None if PAIRED.contains(&callee)
            && let [.., last, set] = arguments
            && name(set)
            && !name(last) =>
        {
            paired(source, last, python_value(source.tokens(set.start + 2..set.end)), set.end)
        }
        None => {
            let mut mistake = Mistake::at(at);
            for argument in arguments.iter().filter(|argument| name(argument)) {
                let value = source.tokens(argument.start + 2..argument.end);
                let range = source.start(argument.start)..source.end(argument.end - 1);
                mistake = mistake.replace(range, python_value(value));
            }
            mistake
        }
    }
}

/// A value as Python writes it.
pub fn python_value(value: &str) -> &str {
    match value {
        "True" => "true",
        "False" => "false",
        value => value,
    }
}

/// Not all fields of an option struct are set.
fn all_fields(error: &CompileError, source: &Source, first: usize) -> Option<Mistake> {
    let of_type = error.message.rsplit("::").next()?.trim_end_matches('`');
    let open = source.next(first, &["{"])?;
    let close = source.close(open);
    let last = close.checked_sub(1)?;
    let comma = if ["{", ","].contains(&source.word(last)) { " " } else { ", " };
    of_type.ends_with("Options").then(|| {
        Mistake::at(source.start(first)).edit(source.end(last), format!("{comma}..Default::default()"))
    })
}
