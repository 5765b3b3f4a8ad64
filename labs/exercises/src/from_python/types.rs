//! Types, as far as a student's text shows them: the compiler does not report the type of every value.

use std::ops::Range;

use super::Source;

/// A type, as far as the text shows it.
#[derive(Clone, Copy, PartialEq)]
pub enum Type {
    Tensor,
    F64,
    F32,
    Integer,
    /// The list itself, not a reference to one.
    List,
}

/// The maximum number of names to follow.
pub const DEPTH: usize = 4;

pub fn is_whole(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit())
}

pub fn is_float(text: &str) -> bool {
    text.split_once('.').is_some_and(|(whole, rest)| is_whole(whole) && is_whole(rest))
}

fn named_type(text: &str) -> Option<Type> {
    let plain = text.trim_start_matches('&').trim_start_matches("mut ").trim();
    match plain {
        "Tensor" | "todevice::Tensor" => Some(Type::Tensor),
        "f64" => Some(Type::F64),
        "f32" => Some(Type::F32),
        "usize" | "u64" | "u32" | "u16" | "u8" | "isize" | "i64" | "i32" | "i16" | "i8" => {
            Some(Type::Integer)
        }
        _ if text.starts_with("Vec<") || text.starts_with('[') => Some(Type::List),
        _ => None,
    }
}

/// The type of a value, if its text leaves no doubt: a number literal may have any type.
pub fn type_of(source: &Source, value: Range<usize>, depth: usize) -> Option<Type> {
    let mut value = value;
    while ["&", "*", "mut"].contains(&source.word(value.start)) {
        value.start += 1;
    }
    let last = value.end.checked_sub(1).filter(|last| *last >= value.start)?;
    let depth = depth.checked_sub(1)?;
    if value.len() == 1 {
        return source.is_name(last).then(|| declared(source, last, depth))?;
    }
    if source.word(last - 1) == "as" {
        return named_type(source.word(last));
    }
    if source.value_end(value.start) != last {
        return None;
    }
    if ["(", "["].contains(&source.word(value.start)) && source.close(value.start) == last {
        return match source.word(value.start) {
            "[" => Some(Type::List),
            _ => type_of(source, value.start + 1..last, depth),
        };
    }
    if source.reads(value.start, &["vec", "!"]) || source.reads(value.start, &["Vec", ":", ":"]) {
        return (source.word(last) != "?").then_some(Type::List);
    }
    // The last call, and whether it has a `?`.
    let is_tried = source.word(last) == "?";
    let close = if is_tried { last - 1 } else { last };
    let name = source.open(close).checked_sub(1).filter(|_| source.word(close) == ")")?;
    let of_tensor = source.word(name.checked_sub(1)?) == ":" && source.word(value.start) == "Tensor";
    match (source.word(name), is_tried) {
        ("item", true) => Some(Type::F64),
        ("len", false) => Some(Type::Integer),
        ("detach", false) => Some(Type::Tensor),
        ("clone", false) => type_of(source, value.start..name.checked_sub(1)?, depth),
        (
            "to" | "cpu" | "forward" | "matmul" | "bmm" | "mean" | "sum" | "sqrt" | "relu" | "narrow"
            | "select" | "get" | "reshape" | "transpose" | "copy" | "softmax" | "square" | "pow",
            true,
        ) => Some(Type::Tensor),
        ("randn" | "zeros" | "ones" | "arange" | "from_slice" | "stack" | "cat", true) if of_tensor => {
            Some(Type::Tensor)
        }
        _ => None,
    }
}

/// The declared type of a name, or the type of its value.
fn declared(source: &Source, place: usize, depth: usize) -> Option<Type> {
    let name = source.word(place);
    let is_name = |token: &usize| source.word(*token) == name;
    let mut at = place;
    while let Some(before) = at.checked_sub(1) {
        at = before;
        match source.word(at) {
            ")" | "]" | "}" => at = source.open(at),
            "for" if (at..source.next(at, &["in"])?).any(|token| is_name(&token)) => return None,
            // A closure parameter.
            "|" if is_name(&(at + 1)) && ["|", ",", ":"].contains(&source.word(at + 2)) => return None,
            "|" if source.word(at + 1) == "("
                && (at + 2..source.close(at + 1)).any(|token| is_name(&token)) =>
            {
                return None;
            }
            "let" => {
                let Some(equals) = source.next(at, &["=", ";"]) else { continue };
                // The `let` statement that contains the name itself declares another variable.
                let end = source.next(equals, &[";"]).unwrap_or(equals);
                if !(at..equals).any(|token| is_name(&token)) || (equals..=end).contains(&place) {
                    continue;
                }
                let only = if source.word(at + 1) == "mut" { at + 2 } else { at + 1 };
                if source.reads(only, &[name, ":"]) {
                    return named_type(source.tokens(only + 2..equals));
                }
                // `if let Some(x) = …`
                let is_plain = source.reads(only, &[name, "="]) || source.word(only) == "(";
                if !is_plain || ["if", "while"].contains(&source.word(at.checked_sub(1)?)) {
                    return None;
                }
                return type_of(source, source.binding(name, place)?, depth);
            }
            "fn" => {
                let arguments = source.arguments(source.next(at, &["("])?);
                let is_it = |argument: &Range<usize>| source.reads(argument.start, &[name, ":"]);
                let argument = arguments.into_iter().find(is_it)?;
                return named_type(source.tokens(argument.start + 2..argument.end));
            }
            _ => {}
        }
    }
    None
}
