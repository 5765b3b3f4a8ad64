//! Python syntax within a line: logic, tuples, comments, and strings; and a missing `;`.

use super::blocks::starts_block;
use super::types::{DEPTH, Type, type_of};
use super::{Mistake, Source};
use crate::compile_error::CompileError;

/// A statement without its `;`.
pub fn unended(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    if error.code() == "E0308" {
        let edits = error.suggestion("using a semicolon here")?;
        return Some(Mistake::of(edits));
    }
    if !error.code().is_empty() || starts_block(source, place.start).is_some() {
        return None;
    }
    let labelled = error.labels().find(|(_, label)| *label == "expected `;`").map(|(range, _)| range.start);
    let at = match error.suggestion("add `;` here") {
        Some(edits) => edits[0].0.start,
        None => {
            // A token at the start of a line belongs to another statement.
            let found = source.at(place.start);
            let one_of = error.message.starts_with("expected one of") && error.message.contains("`;`");
            let is_next = one_of && source.begins_line(found) && source.word(found) != ".";
            labelled.or(is_next.then(|| source.end(found.saturating_sub(1))))?
        }
    };
    let last = source.before(at)?;
    let line = source.slice(source.line_range(at));
    // `a // b` is a division in Python but a comment in Rust, and `import x` is not a Rust statement.
    if source.slice(at..source.line_range(at).end).trim_start().starts_with("//")
        && line.trim_end().ends_with(';')
    {
        return None;
    }
    let is_python = ["import ", "from ", "del ", "assert ", "raise ", "return "]
        .iter()
        .any(|word| line.trim_start().starts_with(word));
    (!is_python || line.trim_start().starts_with("return "))
        .then(|| Mistake::at(source.end(last)).edit(source.end(last), ";"))
}

/// `and`, `or`, `not` and `is`.
pub fn logic(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    let at = source.at(place.start);
    if !error.code().is_empty() || starts_block(source, place.start).is_some() {
        return None;
    }
    let line = source.line_range(place.start);
    let tokens = source.at(line.start)..source.at(line.end);
    let near = at.saturating_sub(1)..at + 1;
    let is_it = |token: usize| match source.word(token) {
        "and" | "or" => source.word(token.wrapping_sub(1)) != "." && source.is_name(token),
        "not" | "is" => near.contains(&token),
        _ => false,
    };
    if !near.clone().any(is_it) {
        return None;
    }
    // Fix the whole condition at once.
    let mut mistake = Mistake::at(place.start);
    for token in tokens {
        let range = source.start(token)..source.end(token);
        match source.word(token) {
            "and" => mistake = mistake.replace(range, "&&"),
            "or" => mistake = mistake.replace(range, "||"),
            "is" if source.word(token + 1) == "None" || source.reads(token + 1, &["not", "None"]) => {
                let compared = source.value_start(token - 1)..token;
                // Only an `Option` has these methods.
                if type_of(source, compared, DEPTH).is_some() {
                    return Some(Mistake::at(place.start));
                }
                let (last, method) = match source.word(token + 1) {
                    "None" => (token + 1, ".is_none()"),
                    _ => (token + 2, ".is_some()"),
                };
                mistake = mistake.replace(source.end(token - 1)..source.end(last), method);
            }
            "is" if source.word(token + 1) == "not" => {
                mistake = mistake.replace(range.start..source.end(token + 1), "!=");
            }
            "is" => mistake = mistake.replace(range, "=="),
            "not" if source.word(token.wrapping_sub(1)) != "is" => {
                let start = source.start(token + 1);
                let end = source.next(token, &["{", "and", "or", ";"])?;
                let is_compared = source.next(token, &["=", "<", ">", "!"]).is_some_and(|sign| sign < end);
                let is_list = type_of(source, token + 1..end, DEPTH) == Some(Type::List);
                mistake = match is_compared {
                    // An empty list is falsy in Python.
                    _ if is_list => {
                        mistake.replace(range.start..start, "").edit(source.end(end - 1), ".is_empty()")
                    }
                    true => mistake.replace(range.start..start, "!(").edit(source.end(end - 1), ")"),
                    false => mistake.replace(range.start..start, "!"),
                };
            }
            _ => {}
        }
    }
    Some(mistake)
}

/// Several names, or several values, without parentheses.
pub fn tuple(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    let found = source.at(place.start);
    if error.code() == "E0308" {
        let is_array = error.label().starts_with("expected `[") && error.label().contains("found `(_");
        let last = source.before(place.end)?;
        return (is_array && source.word(found) == "(").then(|| {
            let open = source.start(found)..source.end(found);
            Mistake::at(place.start).replace(open, "[").replace(source.start(last)..source.end(last), "]")
        });
    }
    if !error.code().is_empty() || source.word(found) != "," || starts_block(source, place.start).is_some() {
        return None;
    }
    let line = source.line_range(place.start);
    let first = source.at(line.start);
    let mut mistake = match error.suggestion("try adding parentheses to match on a tuple") {
        Some(edits) => Mistake::of(edits),
        // `x, y = a, b` without `let`, or `return a, b`.
        None if source.word(first) == "return" => {
            let end = source.next(first, &[";", "}"]).unwrap_or(source.at(line.end));
            let range = source.start(first + 1)..source.end(end - 1);
            return Some(Mistake::at(range.start).edit(range.start, "(").edit(range.end, ")"));
        }
        None => {
            let equals =
                source.next(first, &["="]).filter(|equals| source.is_name(first) && *equals > found)?;
            let is_names = (first..equals).all(|token| source.is_name(token) || source.word(token) == ",");
            if !is_names {
                return None;
            }
            Mistake::at(line.start).edit(source.start(first), "let (").edit(source.end(equals - 1), ")")
        }
    };
    // Also the values.
    if source.word(first) != "for"
        && let Some(equals) = source.next(found, &["="])
        && let Some(end) = source.next(equals, &[";"])
        && source.next(equals, &[","]).is_some_and(|comma| comma < end)
    {
        mistake = mistake.edit(source.start(equals + 1), "(").edit(source.end(end - 1), ")");
    }
    Some(mistake)
}

/// `#` before a comment.
pub fn comment(error: &CompileError, source: &Source) -> Option<Mistake> {
    let line = source.line_range(error.place().start);
    let tokens = source.at(line.start)..source.at(line.end).max(source.at(line.start) + 1);
    let is_sign =
        |token: &usize| source.word(*token) == "#" && !["[", "!"].contains(&source.word(*token + 1));
    if let Some(text) = source.slice(line.clone()).trim().strip_prefix("\"\"\"") {
        let start = source.start(tokens.start);
        let text = text.trim_end_matches('"').trim();
        return error
            .code()
            .is_empty()
            .then(|| Mistake::at(start).replace(start..line.end, format!("// {text}")));
    }
    // A quote in the comment may swallow the text after it.
    let sign = tokens.clone().find(is_sign)?;
    let is_grammar = error.code().is_empty() || error.code().starts_with("E076");
    let place = error.place().start;
    let range = source.start(sign)..source.end(sign);
    (is_grammar && range.start <= place).then(|| Mistake::at(range.start).replace(range, "//"))
}

/// Quotes and format strings.
pub fn text(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    let found = source.at(place.start);
    if error.code() == "E0277" && error.message.contains("doesn't implement `std::fmt::Display`") {
        let text = source.slice(place.clone());
        let is_list =
            ["`Vec<", "`[", "`Option<", "`HashMap<"].iter().any(|start| error.message.starts_with(start));
        if let Some(name) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            let format = format!("{{{name}:?}}");
            return is_list.then(|| Mistake::at(place.start).replace(place, format));
        }
        // `println!("{}", list)`
        let open = source.around(found).filter(|_| is_list)?;
        let format = source.start(open + 1)..source.end(open + 1);
        let text = source.slice(format.clone());
        return (text.matches("{}").count() == 1)
            .then(|| Mistake::at(place.start).replace(format, text.replace("{}", "{:?}")));
    }
    if error.message.starts_with("prefix `f` is unknown") {
        let open = source.around(found)?;
        let prefix = source.start(found)..source.start(found) + 1;
        let mistake = Mistake::at(place.start).replace(prefix, "");
        let name = open.checked_sub(1)?;
        let is_print = source.word(name) == "print";
        // `let text = f"…"`
        let is_call = ["print", "!"].contains(&source.word(name));
        return Some(match (is_print, is_call) {
            (true, _) => mistake.replace(source.start(name)..source.end(name), "println!"),
            (_, true) => mistake,
            _ => {
                // The string is a separate token.
                mistake.edit(source.start(found), "format!(").edit(source.end(found + 1), ")")
            }
        });
    }
    let edits = error
        .suggestion("if you meant to write a string literal")
        .or_else(|| error.suggestion("you might be missing a string literal to format with"))
        .or_else(|| error.suggestion("consider adding a format specifier"));
    // Not every value implements `Display`.
    let debug = edits?.into_iter().map(|(range, new)| (range, new.replace("{}", "{:?}")));
    Some(Mistake::of(debug.collect()))
}
