//! Words of Python that Rust does not have.

use super::arguments::python_value;
use super::types::{DEPTH, Type, type_of};
use super::{Mistake, Source};
use crate::compile_error::CompileError;

pub fn python(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    let first = source.at(place.start);
    let at = source.start(first);
    let word = source.word(first);
    let range = at..source.end(first);
    match error.code() {
        "" => {
            let line = source.line_range(place.start);
            let begin = source.at(line.start);
            return imported(source, begin).or_else(|| statement(source, begin));
        }
        "E0423" if ["print", "println"].contains(&word) => return printed(source, first),
        "E0425" if ["True", "False"].contains(&word) => {
            return Some(Mistake::at(at).replace(range, python_value(word)));
        }
        "E0425" if word == "pass" => return Some(Mistake::at(at).replace(at..source.end(first + 1), "")),
        "E0425" if source.word(first + 1) == "(" => return function(source, first),
        // Rust's `append` takes another list.
        "E0308" if error.label().starts_with("expected `&mut Vec<") => {
            let open = source.around(first)?;
            let name = open.checked_sub(1)?;
            let range = source.start(name)..source.end(name);
            return (source.word(name) == "append").then(|| Mistake::at(range.start).replace(range, "push"));
        }
        "E0599" => {}
        _ => return None,
    }
    let method = source.before(place.end)?;
    let range = source.start(method)..source.end(method);
    let on_tensor =
        error.message.contains("`todevice::Tensor`") || error.message.contains("`&todevice::Tensor`");
    let new = match (source.word(method), on_tensor) {
        ("append", false) => "push",
        ("float", true) => "to(DType::F32)",
        ("half", true) => "to(DType::F16)",
        ("double", true) => "to(DType::F64)",
        ("long", true) => "to(DType::I64)",
        ("numpy" | "tolist", true) => "to_vec::<f32>()",
        ("push", false) if error.message.contains("for array `[_; 0]`") => {
            let list = source.binding(source.word(method.checked_sub(2)?), method)?;
            let (start, end) = (source.start(list.start), source.end(list.end - 1));
            return (source.slice(start..end) == "[]")
                .then(|| Mistake::at(start).replace(start..end, "Vec::new()"));
        }
        _ => return None,
    };
    // Include the parentheses, if there are any.
    let end = if new.ends_with(')') { source.end(method + 2) } else { range.end };
    let is_plain = !new.ends_with(')') || source.reads(method + 1, &["(", ")"]);
    is_plain.then(|| Mistake::at(range.start).replace(range.start..end, new))
}

/// `print(x)`
fn printed(source: &Source, name: usize) -> Option<Mistake> {
    let open = name + 1;
    let close = source.close(open);
    let arguments = source.arguments(open);
    let at = source.start(name);
    let is_text = |argument: &std::ops::Range<usize>| {
        argument.len() == 1 && source.word(argument.start).starts_with('"')
    };
    if source.word(name) == "println"
        || arguments.is_empty()
        || arguments.len() == 1 && is_text(&arguments[0])
    {
        return Some(Mistake::at(at).replace(at..source.end(name), "println!"));
    }
    let mut format = Vec::new();
    let mut values = String::new();
    for argument in &arguments {
        let text = source.tokens(argument.clone());
        match is_text(argument) {
            true => format.push(text.trim_matches('"').to_owned()),
            false if argument.len() == 1 && source.is_name(argument.start) => {
                format.push(format!("{{{text}}}"))
            }
            false => {
                format.push("{}".to_owned());
                values += &format!(", {text}");
            }
        }
    }
    let text = format!("println!(\"{}\"{values})", format.join(" "));
    Some(Mistake::at(at).replace(at..source.end(close), text))
}

/// A Python built-in function.
fn function(source: &Source, name: usize) -> Option<Mistake> {
    let open = name + 1;
    let close = source.close(open);
    let range = source.start(name)..source.end(close);
    let arguments: Vec<&str> =
        source.arguments(open).into_iter().map(|argument| source.tokens(argument)).collect();
    let text = match (source.word(name), &arguments[..]) {
        ("len", [list]) => format!("{list}.len()"),
        ("range", [..]) => range_of(source.slice(range.clone())),
        ("enumerate", [list]) => format!("{list}.iter().enumerate()"),
        ("sum", [list]) => format!("{list}.iter().sum::<f64>()"),
        ("abs", [value]) => format!("{value}.abs()"),
        ("max" | "min", [one, two]) => format!("{one}.{}({two})", source.word(name)),
        ("str", [value]) => format!("{value}.to_string()"),
        ("float", [value]) if !value.starts_with('"') => {
            // A tensor's only element, or a number of another type.
            let is_number =
                value.ends_with("len()") || value.starts_with(|first: char| first.is_ascii_digit());
            if is_number { format!("({value} as f64)") } else { format!("{value}.item()?") }
        }
        ("int", [value]) => format!("({value} as i64)"),
        (
            "list" | "tuple" | "set" | "dict" | "isinstance" | "sorted" | "type" | "map" | "filter" | "float"
            | "any" | "all",
            _,
        ) => {
            return Some(Mistake::at(range.start));
        }
        _ => return None,
    };
    let text = if source.word(close + 1) == "as" { text.replace(" as f64)", ")") } else { text };
    Some(Mistake::at(range.start).replace(range, text))
}

/// `range(n)` becomes `0..n`.
pub fn range_of(values: &str) -> String {
    let values = values.trim();
    let Some(given) = values.strip_prefix("range(").and_then(|rest| rest.strip_suffix(')')) else {
        return values.to_owned();
    };
    match given.split(',').map(str::trim).collect::<Vec<_>>()[..] {
        [end] => format!("0..{end}"),
        [start, end] => format!("{start}..{end}"),
        [start, end, step] => format!("({start}..{end}).step_by({step})"),
        _ => values.to_owned(),
    }
}

/// `import torch`: most of Python's imports need no equivalent.
fn imported(source: &Source, first: usize) -> Option<Mistake> {
    let module = ["import", "from"].contains(&source.word(first)).then(|| source.word(first + 1))?;
    let at = source.start(first);
    let line = at..source.line_range(at).end;
    let all = ["todevice", ":", ":", "prelude", ":", ":", "*"];
    let is_there = (0..source.len()).any(|token| source.reads(token, &all));
    let text = if is_there { "" } else { "use todevice::prelude::*;" };
    let known = ["torch", "todevice", "numpy", "math", "tqdm", "time", "os"].contains(&module);
    let mistake = Mistake::at(at).replace(line, text);
    Some(if known { mistake } else { Mistake::at(at) })
}

/// A statement that Rust does not have.
fn statement(source: &Source, first: usize) -> Option<Mistake> {
    let at = source.start(first);
    let range = at..source.end(first);
    let end = source.before(source.line_range(at).end)?;
    let end = if source.word(end) == ";" { end } else { end + 1 };
    let value = source.tokens(first + 1..end);
    let whole = at..source.end(end - 1);
    match source.word(first) {
        "del" => Some(Mistake::at(at).replace(whole, format!("drop({value})"))),
        "assert" if source.word(first + 1) != "(" => {
            let condition = source.next(first + 1, &[",", ";"]).unwrap_or(end);
            if type_of(source, first + 1..condition, DEPTH) == Some(Type::List) {
                let list = source.start(first + 1)..source.end(condition - 1);
                let text = format!("assert!(!{}.is_empty()", source.slice(list.clone()));
                return Some(Mistake::at(at).replace(at..list.end, text).edit(whole.end, ")"));
            }
            Some(Mistake::at(at).replace(whole, format!("assert!({value})")))
        }
        "raise" => Some(Mistake::at(at).replace(whole, "return Err(Error::custom(\"…\"))")),
        "pass" => Some(Mistake::at(at).replace(range, "")),
        _ => None,
    }
}
