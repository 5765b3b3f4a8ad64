//! Python's blocks: `for … :`, `def`, `with`; and code that should be a closure.

use std::ops::Range;

use super::results::indentation;
use super::words::range_of;
use super::{Mistake, Source};
use crate::compile_error::CompileError;

/// The keyword that begins a Python block at the start of a line, and the line.
pub fn starts_block(source: &Source, byte: usize) -> Option<(usize, Range<usize>)> {
    const KEYWORDS: [&str; 9] = ["for", "while", "if", "elif", "else", "def", "class", "try", "except"];
    let line = source.line_range(byte);
    let first = source.at(line.start);
    let last = source.before(line.end)?;
    let keyword = if source.word(first) == "}" { first + 1 } else { first };
    let is_it = last > first && source.word(last) == ":" && KEYWORDS.contains(&source.word(keyword));
    is_it.then_some((keyword, source.start(keyword)..source.end(last)))
}

/// A Python block: with a colon, and without braces.
pub fn block(error: &CompileError, source: &Source) -> Option<Mistake> {
    if !error.code().is_empty() {
        return None;
    }
    let place = error.place();
    let is_lost = error.message.contains("closing delimiter") || error.message.contains("unclosed delimiter");
    let found = match is_lost {
        true => (0..source.len()).find_map(|token| starts_block(source, source.start(token))),
        false => starts_block(source, place.start),
    };
    if let Some((keyword, line)) = found {
        return Some(braced(source, keyword, line));
    }
    // The arguments of `def f(` may be on separate lines.
    let keyword = match is_lost {
        true => (0..source.len()).find(|token| source.word(*token) == "def" && source.begins_line(*token)),
        false => Some(source.at(source.line_range(place.start).start)),
    };
    if let Some(keyword) = keyword.filter(|keyword| source.word(*keyword) == "def") {
        let colon = source.next(source.close(keyword + 2) + 1, &[":", "{"])?;
        let head = source.start(keyword)..source.end(colon);
        return (source.word(colon) == ":").then(|| braced(source, keyword, head));
    }
    let at = source.at(place.start);
    let before = at.checked_sub(1)?;
    // `fn f(x, y) {`
    if error.message.starts_with("expected one of `:`, `@`, or `|`") {
        let open = source.around(at)?;
        let name = open.checked_sub(1)?;
        let brace = source.close(open) + 1;
        let range = source.start(name - 1)..source.end(brace);
        let is_it = source.word(name - 1) == "fn" && source.word(brace) == "{";
        return is_it.then(|| Mistake::at(range.start).replace(range, function(source, name)));
    }
    // A line that begins a block, with nothing at its end.
    if is_lost {
        let lacks_brace = |token: &usize| {
            let line = source.line_range(source.start(*token));
            let last = source.before(line.end).unwrap_or(*token);
            let is_block =
                ["for", "while", "if"].contains(&source.word(*token)) && source.begins_line(*token);
            let deeper =
                indentation(source, source.start(last + 1)).len() > indentation(source, line.start).len();
            is_block && deeper && (*token..=last).all(|token| !["{", ";"].contains(&source.word(token)))
        };
        let token = (0..source.len()).find(lacks_brace)?;
        let end = source.line_range(source.start(token)).end;
        let end = source.end(source.before(end)?);
        return Some(Mistake::at(source.start(token)).edit(end, " {"));
    }
    if source.word(before) == "elif" || source.word(at) == "elif" {
        let elif = if source.word(at) == "elif" { at } else { before };
        let range = source.start(elif)..source.end(elif);
        return Some(Mistake::at(range.start).replace(range, "else if"));
    }
    conditional(source, at)
}

/// The first line of a block, in Rust.
fn braced(source: &Source, keyword: usize, line: Range<usize>) -> Mistake {
    let at = line.start;
    let end = source.before(line.end).unwrap_or(keyword);
    let head = source.tokens(keyword + 1..end);
    let condition = || in_rust(head);
    let text = match source.word(keyword) {
        "for" => match head.split_once(" in ") {
            Some((names, values)) => format!("for {} in {} {{", in_parentheses(names), range_of(values)),
            None => format!("for {head} {{"),
        },
        "elif" => format!("else if {} {{", condition()),
        "else" => "else {".to_owned(),
        // Only the student knows the argument types.
        "def" => function(source, keyword + 1),
        "class" | "try" | "except" => return Mistake::at(at),
        keyword => format!("{keyword} {} {{", condition()),
    };
    let indent = indentation(source, at);
    let is_open = !source.word(end + 1).is_empty() && lacks_end(source, line.end, indent.len());
    // `else` goes after the closing brace that the block before it lacks, which is inserted there.
    let is_else = text.starts_with("else") && source.word(keyword.saturating_sub(1)) != "}";
    let mistake = Mistake::at(at).replace(line.clone(), text);
    let mistake = if is_else { mistake.edit(at, "} ") } else { mistake };
    let Some(end) = is_open.then(|| end_of_block(source, line.end, indent.len())) else { return mistake };
    let next = source.at(end);
    let follows = ["else", "elif"].contains(&source.word(next)) && source.begins_line(next);
    if follows {
        let mistake_after =
            starts_block(source, source.start(next)).map(|(keyword, line)| braced(source, keyword, line));
        return match mistake_after {
            Some(after) => mistake.and(after),
            None => mistake,
        };
    }
    mistake.edit(end, format!("\n{indent}}}"))
}

/// `def f(x, y)` as a function of tensors, the most common case here.
fn function(source: &Source, name: usize) -> String {
    let open = name + 1;
    let close = source.close(open);
    let argument = |tokens: Range<usize>| {
        let name = source.word(tokens.start);
        let of_type = match source.tokens(tokens.start + 2..tokens.end) {
            "" | "torch.Tensor" | "Tensor" => "&Tensor",
            "int" => "usize",
            "float" => "f64",
            other => other,
        };
        format!("{name}: {of_type}")
    };
    let arguments: Vec<String> = source.arguments(open).into_iter().map(argument).collect();
    let returned = match source.word(close + 3) {
        "None" => "()",
        "float" => "f64",
        "int" => "usize",
        _ => "Tensor",
    };
    format!("fn {}({}) -> Result<{returned}> {{", source.word(name), arguments.join(", "))
}

/// Whether the lines of a block lack a closing brace.
fn lacks_end(source: &Source, from: usize, indent: usize) -> bool {
    let next = source.at(end_of_block(source, from, indent));
    !(source.word(next) == "}" && indentation(source, source.start(next)).len() == indent)
}

/// The end of the lines with a larger indentation.
fn end_of_block(source: &Source, from: usize, indent: usize) -> usize {
    let mut end = from;
    let mut at = source.line_range(from).end + 1;
    while at < source.text.len() {
        let range = source.line_range(at);
        let line = source.slice(range.clone());
        if !line.trim().is_empty() {
            if line.len() - line.trim_start().len() <= indent {
                break;
            }
            end = range.end;
        }
        at = range.end + 1;
    }
    end
}

/// Replaces Python's operators in a condition by Rust's.
fn in_rust(condition: &str) -> String {
    let condition = condition.replace(" is not None", ".is_some()").replace(" is None", ".is_none()");
    let mut words: Vec<&str> = condition.split(' ').collect();
    for word in &mut words {
        *word = match *word {
            "and" => "&&",
            "or" => "||",
            "is" => "==",
            "True" => "true",
            "False" => "false",
            word => word,
        };
    }
    words.join(" ").replace("== not ", "!= ").replace("not ", "!")
}

/// Wraps comma-separated names in parentheses, as a tuple.
fn in_parentheses(names: &str) -> String {
    let names = names.trim();
    if names.contains(',') && !names.starts_with(['(', '[']) {
        format!("({names})")
    } else {
        names.to_owned()
    }
}

/// `a if condition else b`.
fn conditional(source: &Source, found: usize) -> Option<Mistake> {
    let line = source.line_range(source.start(found));
    let tokens = source.at(line.start)..source.at(line.end);
    let at = tokens.clone().find(|token| source.word(*token) == "if")?;
    if at == tokens.start || source.word(at - 1) == "else" {
        return None;
    }
    let otherwise = source.next(at, &["else"]).filter(|token| tokens.contains(token))?;
    let starts = |token: &usize| ["=", "return", "(", ",", "{"].contains(&source.word(*token));
    let first = (tokens.start..at).rev().find(starts).map_or(tokens.start, |token| token + 1);
    let first = first.min(source.value_start(at - 1));
    let end = (otherwise + 1..tokens.end)
        .find(|token| [";", ","].contains(&source.word(*token)))
        .unwrap_or(source.value_end(otherwise + 1) + 1);
    if source.word(at + 1) == "{" || source.word(otherwise + 1) == "{" || first >= at {
        return None;
    }
    let range = source.start(first)..source.end(end - 1);
    // There is a different way to choose a device.
    if ["\"cuda\"", "'cuda'"].contains(&source.tokens(first..at)) {
        return None;
    }
    let text = format!(
        "if {} {{ {} }} else {{ {} }}",
        in_rust(source.tokens(at + 1..otherwise)),
        source.tokens(first..at),
        source.tokens(otherwise + 1..end),
    );
    Some(Mistake::at(range.start).replace(range, text))
}

/// Code that should be a closure: `with no_grad():`, or a call instead of a closure.
pub fn closure(error: &CompileError, source: &Source) -> Option<Mistake> {
    let place = error.place();
    let found = source.at(place.start);
    if error.code() == "E0277" && error.message.starts_with("expected a `FnOnce") {
        let mistake = Mistake::at(place.start).edit(place.start, "|| ");
        // The error is now about the function, no longer about the code in it.
        let last = source.before(place.end)?;
        let end = source.close(source.around(found)?);
        if source.word(last) != "?" {
            return Some(mistake);
        }
        let outside = if source.word(end + 1) == "?" { "" } else { "?" };
        return Some(mistake.replace(source.start(last)..place.end, "").edit(source.end(end), outside));
    }
    if !error.code().is_empty() {
        return None;
    }
    let line = source.line_range(place.start);
    let first = source.at(line.start);
    let near = source.at(line.start)..source.at(line.end);
    if let Some(at) = near.clone().find(|token| source.word(*token) == "lambda") {
        let colon = source.next(at, &[":"])?;
        let names = source.tokens(at + 1..colon);
        let range = source.start(at)..source.end(colon);
        return Some(Mistake::at(range.start).replace(range, format!("|{names}|")));
    }
    let last = source.before(line.end)?;
    if source.word(first) == "with" && source.word(last) == ":" {
        return Some(with(source, first, last));
    }
    // `no_grad() { … }`
    let open = found.checked_sub(2)?;
    let is_scope = source.reads(open, &["(", ")", "{"])
        && ["no_grad", "inference_mode"].contains(&source.word(open.checked_sub(1)?));
    is_scope.then(|| {
        let close = source.close(found);
        Mistake::at(place.start)
            .replace(source.start(open)..source.start(found), "(|| ")
            .edit(source.end(close), ")")
    })
}

/// `with no_grad():` and its block.
fn with(source: &Source, first: usize, colon: usize) -> Mistake {
    let at = source.start(first);
    let mut name = first + 1;
    while source.word(name + 1) == "." {
        name += 2;
    }
    let open = name + 1;
    let given = source.tokens(open + 1..source.close(open));
    let given = if given.is_empty() { String::new() } else { format!("{given}, ") };
    let name = match source.word(name) {
        name if name.is_empty() || source.word(open) != "(" => return Mistake::at(at),
        "autocast" => "todevice::amp::autocast",
        "stream" => "todevice::cuda::stream",
        "enable_grad" => "todevice::enable_grad",
        name => name,
    };
    let indent = indentation(source, at);
    let end = end_of_block(source, source.end(colon), indent.len());
    let body = colon + 1..source.before(end).map_or(colon + 1, |last| last + 1);
    // A single statement with a value.
    let begin = if source.word(body.start) == "let" { body.start + 1 } else { body.start };
    let equals = source.next(begin, &["="]).filter(|equals| *equals == begin + 1);
    if let Some(equals) = equals
        && source.next(equals, &[";"]).unwrap_or(body.end) + 1 >= body.end
    {
        let value = source.tokens(equals + 1..body.end);
        let value = value.trim_end_matches(';');
        // These calls cannot fail.
        let is_sure = ["detach()", "clone()", "len()"].iter().any(|call| value.ends_with(call));
        if is_sure {
            let text = match value.contains('?') {
                true => format!("let {} = {name}({given}|| Ok::<_, Error>({value}))?;", source.word(begin)),
                false => format!("let {} = {name}({given}|| {value});", source.word(begin)),
            };
            return Mistake::at(at).replace(at..end, text);
        }
        let value = value.trim_end_matches('?');
        let text = format!("let {} = {name}({given}|| {value})?;", source.word(begin));
        return Mistake::at(at).replace(at..end, text);
    }
    // Code with a `?` returns a result, and nothing else determines its error type.
    let end_of_closure = match body.into_iter().any(|token| source.word(token) == "?") {
        true => format!("\n{indent}    Ok::<(), Error>(())\n{indent}}})?;"),
        false => format!("\n{indent}}});"),
    };
    Mistake::at(at).replace(at..source.end(colon), format!("{name}({given}|| {{")).edit(end, end_of_closure)
}
