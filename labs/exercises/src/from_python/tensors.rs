//! Operators of Python's tensors, and devices given by name.

use std::ops::Range;

use super::results::between;
use super::types::{DEPTH, Type, is_float, is_whole, type_of};
use super::{Mistake, Source};
use crate::compile_error::CompileError;

pub fn operator(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    let (first, last) = (source.at(place.start), source.before(place.end)?);
    let is_tensor = |name: &str| name.trim_start_matches('&') == "todevice::Tensor";
    match error.code() {
        // `x += y`
        "E0368" if error.message.contains("cannot be applied to type `todevice::Tensor`") => {
            let sign = (first..last).find(|token| source.word(token + 1) == "=")?;
            let name = source.tokens(first..sign);
            let value = source.tokens(sign + 2..last + 1);
            let is_one = source.value_end(sign + 2) >= last;
            let is_number = value.starts_with(|first: char| first.is_ascii_digit());
            let value = match (is_one, value.starts_with('&') || is_number) {
                (true, true) => value.to_owned(),
                (true, false) => format!("&{value}"),
                _ => format!("({value})?"),
            };
            let operand = if name.starts_with('*') {
                name.trim_start_matches('*').to_owned()
            } else {
                format!("&{name}")
            };
            let text = format!("{name} = ({operand} {} {value})?", source.word(sign));
            Some(Mistake::at(place.start).replace(place, text))
        }
        "E0368" if error.message.contains("`+=` cannot be applied to type `Vec<") => {
            let sign = (first..last).find(|token| source.word(token + 1) == "=")?;
            let name = source.tokens(first..sign);
            let text = added(error, source, sign + 2..last + 1)?;
            Some(Mistake::at(place.start).replace(place, format!("{name}.{text}")))
        }
        // `sum += loss`
        "E0277" => {
            let operation = between(error.label(), "no implementation for `", "`")?;
            let sign = source.slice(place.clone());
            let (left, right) = operation.split_once(&format!(" {sign} "))?;
            let end = source.next(last + 1, &[";"])?.checked_sub(1)?;
            let is_it = sign.len() == 2 && is_tensor(right) && ["{float}", "f64"].contains(&left);
            (is_it && source.value_end(last + 1) >= end)
                .then(|| Mistake::at(place.start).edit(source.end(end), ".item()?"))
        }
        // `x ** 2`
        "E0614" if source.word(first) == "*" && source.word(first.checked_sub(1)?) == "*" => {
            power(source, first - 1)
        }
        // `x[0]`
        "E0608" => indexed(error, source, first),
        // `loss > 0.0`
        "E0369" if error.message.starts_with("binary operation `") => {
            let of_type = between(&error.message, "applied to type `", "`")?;
            let (range, _) = error.labels().find(|(_, label)| is_tensor(label))?;
            let (start, end) = (range.start, range.end);
            is_tensor(of_type).then(|| Mistake::at(start).edit(end, ".item()?"))
        }
        "E0308" if error.label().starts_with("expected `bool`, found `") => {
            let (_, found) = super::results::expected_and_found(error.label());
            let is_tensor = found.trim_start_matches('&') == "Tensor";
            is_tensor.then(|| Mistake::at(place.start).edit(place.end, ".item()? != 0.0"))
        }
        "" => grammar(error, source, first),
        _ => None,
    }
}

/// Operators that are syntax errors.
fn grammar(error: &CompileError, source: &Source, found: usize) -> Option<Mistake> {
    let place = error.place();
    if source.word(found) == "@" {
        let last = source.value_end(found + 1);
        let left = source.value_start(found.checked_sub(1)?);
        let lent = if source.word(found + 1) == "&" { "" } else { "&" };
        let value = source.tokens(found + 1..last + 1);
        // A method is called on the value, without `&`.
        let start = if left > 0 && source.word(left - 1) == "&" { left - 1 } else { left };
        let around =
            start.checked_sub(1).filter(|open| source.word(*open) == "(" && source.word(last + 1) == ")");
        let range = match around {
            Some(open) => source.start(open)..source.end(last + 1),
            None => source.start(start)..source.end(last),
        };
        let next = if around.is_some() { last + 2 } else { last + 1 };
        let question_mark = if ["?", "}"].contains(&source.word(next)) { "" } else { "?" };
        let text = format!("{}.matmul({lent}{value}){question_mark}", source.tokens(left..found));
        return Some(Mistake::at(place.start).replace(range, text));
    }
    // Python's `//` operator, which begins a comment in Rust.
    if let Some(edits) = error.suggestion("add `;` here") {
        let at = edits[0].0.start;
        let line = source.line_range(at);
        let rest = source.slice(at..line.end);
        let division = rest.trim_start().strip_prefix("//")?.strip_suffix(';')?;
        let start = at + rest.find("//")?;
        let is_value = division.trim().starts_with(|first: char| first.is_alphanumeric());
        return (is_value && !division.trim().contains(' '))
            .then(|| Mistake::at(start).replace(start..start + 2, "/"));
    }
    // `means[-1]` on a list, not on a tensor
    if error.message.starts_with("negative integers cannot be used to index") {
        return None;
    }
    // `x[0, 1]` and `x[:, 1]`
    let open = source.around(found)?;
    let value = source.value_start(open.checked_sub(1)?);
    if source.word(open) != "["
        || value > open - 1
        || !(source.is_name(open - 1) || [")", "]"].contains(&source.word(open - 1)))
    {
        return None;
    }
    // Lists have slices too. Only a tensor takes several indices.
    let indices = source.arguments(open);
    let is_tensor = indices.len() > 1
        || source.word(source.close(open) - 1) == ","
        || type_of(source, value..open, DEPTH) == Some(Type::Tensor);
    if !is_tensor {
        return None;
    }
    let mut text = source.tokens(value..open).to_owned();
    let mut dim = 0;
    for index in indices {
        let index = source.tokens(index);
        match index.split_once(':') {
            None => text += &format!(".select({dim}, {index})?"),
            Some(("", "")) => dim += 1,
            Some((start, end)) => {
                let (start, end) = (start.trim(), end.trim());
                let start = if start.is_empty() { "0" } else { start };
                if end.is_empty() {
                    return Some(Mistake::at(place.start));
                }
                text += &narrowed(dim, start, end);
                dim += 1;
            }
        }
    }
    let range = source.start(value)..source.end(source.close(open));
    Some(Mistake::at(place.start).replace(range, text))
}

fn narrowed(dim: usize, start: &str, end: &str) -> String {
    match start {
        "0" => format!(".narrow({dim}, 0, {end})?"),
        _ => format!(".narrow({dim}, {start}, {end} - {start})?"),
    }
}

/// The method call that appends a value to a list.
fn added(error: &CompileError, source: &Source, value: Range<usize>) -> Option<String> {
    let text = source.tokens(value.clone());
    let is_list = source.word(value.start) == "[" && source.close(value.start) + 1 == value.end;
    let is_repeated = source.next(value.start + 1, &[";"]).is_some_and(|sign| sign < value.end);
    if is_list && !is_repeated && source.arguments(value.start).len() == 1 {
        return Some(format!(
            "push({})",
            source.tokens(value.start + 1..value.end - 1).trim_end_matches(',')
        ));
    }
    let item = between(&error.message, "to type `Vec<", "`")?.strip_suffix('>')?;
    let is_number = is_whole(text) || is_float(text);
    match (type_of(source, value, DEPTH), item) {
        _ if text.starts_with('&') => None,
        (Some(Type::List), _) => Some(format!("extend({text})")),
        (Some(Type::Tensor), "todevice::Tensor" | "Tensor" | "_") => Some(format!("push({text})")),
        (Some(Type::F64), "f64" | "_") => Some(format!("push({text})")),
        (None, "f64" | "f32" | "{float}") if is_float(text) => Some(format!("push({text})")),
        (None, "_") if is_number => Some(format!("push({text})")),
        _ => None,
    }
}

/// `x ** 2` is `x.pow(2.0)?` for a tensor; numbers have other methods. Without a certain type, there is no corrected
/// line.
fn power(source: &Source, sign: usize) -> Option<Mistake> {
    let last = source.value_end(sign + 2);
    let exponent = source.tokens(sign + 2..last + 1);
    let base = source.value_start(sign.checked_sub(1)?);
    let name = source.tokens(base..sign);
    let lent = base.checked_sub(1).filter(|before| source.word(*before) == "&").unwrap_or(base);
    let range = source.start(base)..source.end(last);
    let unsure = Mistake::at(range.start);
    let is_digits = is_whole(exponent);
    let positive = exponent.trim_start_matches('-');
    let of_base = type_of(source, base..sign, DEPTH);
    let of_exponent = type_of(source, sign + 2..last + 1, DEPTH);
    let as_float = match of_exponent {
        _ if is_whole(positive) => Some(format!("{exponent}.0")),
        _ if is_float(positive) => Some(exponent.to_owned()),
        Some(Type::F64) if of_base != Some(Type::F32) => Some(exponent.to_owned()),
        Some(Type::F32) if of_base == Some(Type::F32) => Some(exponent.to_owned()),
        _ => None,
    };
    // `**` is right-associative in Python: `x ** 2 ** 2`.
    if source.reads(last + 1, &["*", "*"]) {
        return Some(unsure);
    }
    let text = match (of_base, as_float) {
        (Some(Type::Tensor), Some(exponent)) => {
            let around =
                lent.checked_sub(1).filter(|open| source.word(*open) == "(" && source.word(last + 1) == ")");
            let is_own = around.is_some_and(|open| open == 0 || !source.is_name(open - 1));
            let (range, next) = match around.filter(|_| is_own) {
                Some(open) => (source.start(open)..source.end(last + 1), last + 2),
                None => (source.start(lent)..source.end(last), last + 1),
            };
            let question_mark = if ["?", "}"].contains(&source.word(next)) { "" } else { "?" };
            let text = format!("{name}.pow({exponent}){question_mark}");
            return Some(Mistake::at(range.start).replace(range, text));
        }
        (Some(Type::F64 | Type::F32), Some(exponent)) => format!("{name}.powf({exponent})"),
        (Some(Type::Integer), _) if is_digits => format!("{name}.pow({exponent})"),
        (None, Some(exponent)) if is_float(name) => format!("{name}_f64.powf({exponent})"),
        // Other uses may require another type.
        (None, _) if is_whole(name) && is_digits && source.word(last + 1) == "as" => {
            format!("{name}_i32.pow({exponent})")
        }
        _ => return Some(unsure),
    };
    Some(unsure.replace(range, text))
}

fn indexed(error: &CompileError, source: &Source, open: usize) -> Option<Mistake> {
    if let Some(edits) = error.suggestion("to access tuple element") {
        return Some(Mistake::of(edits));
    }
    let of_type = between(&error.message, "into a value of type `", "`")?.trim_start_matches('&');
    let close = source.close(open);
    let index = source.tokens(open + 1..close);
    let range = source.start(open)..source.end(close);
    let text = match (of_type, index.split_once("..")) {
        ("todevice::Tensor", None) => format!(".get({index})?"),
        ("todevice::Tensor", Some((start, end))) if !end.is_empty() => {
            narrowed(0, if start.is_empty() { "0" } else { start }, end)
        }
        ("todevice::serialize::Dict" | "Dict" | "todevice::serialize::Value" | "Value", _) => {
            format!(".at({index})?")
        }
        _ => return None,
    };
    let value = source.value_start(open.checked_sub(1)?);
    // `x[0]?` already has its `?`.
    let text = if source.word(close + 1) == "?" { text.trim_end_matches('?').to_owned() } else { text };
    Some(Mistake::at(source.start(value)).replace(range, text))
}

/// A device given by name, as in PyTorch.
pub fn device(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    let first = source.at(place.start);
    let text = source.slice(place.clone());
    match error.code() {
        // `torch.device("cuda" if torch.cuda.is_available() else "cpu")`
        "" => {
            let line = source.line_range(place.start);
            let tokens = source.at(line.start)..source.at(line.end);
            let is_chosen =
                |token: &usize| source.reads(*token, &["device", "("]) && source.word(token + 3) == "if";
            let call =
                tokens.clone().find(is_chosen).filter(|call| source.word(call + 2).contains("cuda"))?;
            let range = source.start(source.value_start(call))..source.end(source.close(call + 1));
            Some(Mistake::at(range.start).replace(range, "Device::cuda_if_available()"))
        }
        "E0277" if error.message.contains("From<&str>` is not satisfied") => named(source, place),
        "E0308" if error.label().starts_with("expected `Device`, found `&") => named(source, place),
        "E0599" if error.message.contains("found for enum `todevice::Device`") => {
            let range = source.start(first.checked_sub(3)?)..place.end;
            match text {
                "CPU" | "cpu" => Some(Mistake::at(range.start).replace(place, "Cpu")),
                "CUDA" => Some(Mistake::at(range.start).replace(place, "cuda")),
                // `Device::new("cuda")`
                _ => {
                    let open = source.before(place.end)? + 1;
                    let name = source.arguments(open).into_iter().next()?;
                    let name = source.start(name.start)..source.end(name.end - 1);
                    let device = device_named(source, name)?;
                    Some(
                        Mistake::at(range.start).replace(range.start..source.end(source.close(open)), device),
                    )
                }
            }
        }
        "E0533" if text == "Device::Cuda" => {
            let end = source.before(place.end)?;
            let text = if source.word(end + 1) == "(" { "Device::cuda" } else { "Device::cuda(0)" };
            Some(Mistake::at(place.start).replace(place, text))
        }
        _ => None,
    }
}

fn named(source: &Source, place: Range<usize>) -> Option<Mistake> {
    let device = device_named(source, place.clone())?;
    Some(Mistake::at(place.start).replace(place, device))
}

/// The device with this name: the function's own device parameter, if it has one.
pub fn device_named(source: &Source, name: Range<usize>) -> Option<String> {
    let at = source.at(name.start);
    let text = source.slice(name).trim_matches(['"', '\'']);
    let given = (0..at).rev().take_while(|token| source.word(*token) != "fn");
    let is_given = given.into_iter().any(|token| source.reads(token, &["device", ":", "Device"]));
    match text.split_once(':').unwrap_or((text, "0")) {
        ("cpu", _) => Some("Device::Cpu".to_owned()),
        ("cuda", "0") if is_given => Some("device".to_owned()),
        ("cuda", index) if index.parse::<usize>().is_ok() => Some(format!("Device::cuda({index})")),
        _ => None,
    }
}
