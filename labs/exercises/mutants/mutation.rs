//! Changes of a solution, made by rule from its text.

use std::collections::BTreeSet;

use exercises::{Exercise, rules};

/// A solution with one change.
pub struct Mutant {
    /// The change: `12: drop: optimizer.zero_grad();`. The number is that of the line.
    pub what: String,
    pub text: String,
}

/// All changes of a solution that an exercise's rules allow, each text once.
pub fn mutants(exercise: &Exercise) -> Vec<Mutant> {
    let solution = exercise.solution();
    let lines: Vec<&str> = solution.lines().collect();
    let mut all = Vec::new();
    for at in 0..lines.len() {
        statements(&lines, at, &mut all);
        loops(&lines, at, &mut all);
        if is_code(lines[at]) {
            let changed = words(lines[at]).into_iter().chain(calls(lines[at])).chain(constants(lines[at]));
            for (how, line) in changed.chain(conditions(lines[at])) {
                all.push(mutant(&lines, at, &how, with(&lines, at, &[&line])));
            }
        }
    }
    let mut texts = BTreeSet::from([solution]);
    all.retain(|mutant| {
        texts.insert(mutant.text.clone()) && rules::check(exercise.id, &mutant.text, false).is_ok()
    });
    all
}

fn mutant(lines: &[&str], at: usize, how: &str, text: Vec<&str>) -> Mutant {
    Mutant { what: format!("{}: {how}: {}", at + 1, lines[at].trim()), text: text.join("\n") + "\n" }
}

/// The lines with others in the place of one.
fn with<'a>(lines: &[&'a str], at: usize, new: &[&'a str]) -> Vec<&'a str> {
    [&lines[..at], new, &lines[at + 1..]].concat()
}

/// The lines with one moved to stand before the line that is at `to` now.
fn moved<'a>(lines: &[&'a str], at: usize, to: usize) -> Vec<&'a str> {
    let mut changed = with(lines, at, &[]);
    changed.insert(if to > at { to - 1 } else { to }, lines[at]);
    changed
}

fn is_code(line: &str) -> bool {
    line.starts_with("    ") && !line.trim().starts_with("//")
}

fn is_statement(line: &str) -> bool {
    is_code(line) && line.ends_with(';')
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// A statement is dropped, alone or with the next, doubled, or moved by one or two lines.
fn statements(lines: &[&str], at: usize, all: &mut Vec<Mutant>) {
    let line = lines[at];
    if !is_statement(line) {
        return;
    }
    let mut add = |how: &str, text| all.push(mutant(lines, at, how, text));
    add("drop", with(lines, at, &[]));
    add("double", with(lines, at, &[line, line]));
    if lines.get(at + 1).is_some_and(|next| is_statement(next)) {
        add("drop two", [&lines[..at], &lines[at + 2..]].concat());
        add("swap with the next", moved(lines, at, at + 2));
    }
    if at + 2 < lines.len() {
        add("move down by two", moved(lines, at, at + 3));
    }
    if at >= 2 {
        add("move up by two", moved(lines, at, at - 2));
    }
}

/// A statement is moved out of a loop, to before it or behind it, or into one, to its beginning or its end.
fn loops(lines: &[&str], head: usize, all: &mut Vec<Mutant>) {
    let first = lines[head].trim_start();
    if !is_code(lines[head])
        || !first.ends_with('{')
        || !["for ", "while "].iter().any(|word| first.starts_with(word))
    {
        return;
    }
    let is_end = |line: &&str| indent(line) == indent(lines[head]) && line.trim() == "}";
    let Some(end) = lines[head..].iter().position(is_end).map(|length| head + length) else { return };
    for at in
        (head + 1..end).filter(|&at| is_statement(lines[at]) && indent(lines[at]) == indent(lines[head]) + 4)
    {
        all.push(mutant(lines, at, "move out before the loop", moved(lines, at, head)));
        all.push(mutant(lines, at, "move out behind the loop", moved(lines, at, end + 1)));
    }
    if head > 0 && is_statement(lines[head - 1]) {
        all.push(mutant(lines, head - 1, "move into the loop", moved(lines, head - 1, head + 1)));
    }
    if lines.get(end + 1).is_some_and(|after| is_statement(after)) {
        all.push(mutant(lines, end + 1, "move into the loop", moved(lines, end + 1, end)));
    }
}

/// Devices, types, flags, operators, and names that people mix up.
const WORDS: [(&str, &str); 72] = [
    ("(device)", "(Device::Cpu)"),
    ("x.device()", "Device::Cpu"),
    ("Device::Cpu", "Device::cuda(0)"),
    ("Device::cuda(0)", "Device::cuda(1)"),
    ("Device::cuda(index)", "Device::cuda(0)"),
    ("Device::cuda(rank)", "Device::cuda(0)"),
    (".to(device)?", ".clone()"),
    (".cpu()?", ""),
    ("F16", "F32"),
    ("BF16", "F16"),
    ("F32", "F16"),
    ("F32", "F64"),
    ("I64", "F32"),
    ("true", "false"),
    ("false", "true"),
    ("&x", "&y"),
    ("&y", "&x"),
    ("?;", "?.detach();"),
    (".detach()", ""),
    ("len()", "len() - 1"),
    ("len()", "len() + 1"),
    ("0..", "1.."),
    ("..", "..="),
    (" + ", " - "),
    (" - ", " + "),
    (" * ", " / "),
    (" / ", " * "),
    (" % ", " / "),
    ("sum", "mean"),
    ("mean", "sum"),
    ("Mean", "Sum"),
    ("Sum", "Mean"),
    ("Avg", "Sum"),
    ("Some(", "None.or("),
    ("zero_grad()", "step()"),
    ("copies", "compute"),
    ("compute", "copies"),
    ("backward()", "copy()"),
    ("model", "&model"),
    ("eval()", "train()"),
    ("train()", "eval()"),
    ("no_grad", "enable_grad"),
    ("parameters()", "children()"),
    ("parameters", "buffers"),
    ("buffers", "parameters"),
    ("seed", "seed + 1"),
    (" >= ", " > "),
    (" <= ", " < "),
    (" > ", " < "),
    (" < ", " > "),
    (" == ", " != "),
    (" != ", " == "),
    (" && ", " || "),
    (" || ", " && "),
    (" += ", " -= "),
    (" += ", " = "),
    ("continue", "break"),
    ("break", "continue"),
    ("_device(index)", "()"),
    ("allocated_size", "requested_size"),
    ("total_size", "allocated_size"),
    ("Inactive", "ActiveAllocated"),
    ("max()", "min()"),
    ("argmax", "argmin"),
    ("is_err()", "is_ok()"),
    ("is_some()", "is_none()"),
    ("first", "second"),
    ("second", "first"),
    ("before", "!before"),
    ("i64::from", "-i64::from"),
    ("Some(number)", "None"),
    ("next()", "last()"),
];

fn words(line: &str) -> Vec<(String, String)> {
    let changed = |(from, to): &(&str, &str)| {
        line.contains(from).then(|| (format!("`{from}` is `{to}`"), line.replacen(from, to, 1)))
    };
    WORDS.iter().filter_map(changed).collect()
}

/// Where the bracket that opens at a place is closed.
fn closing(line: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, letter) in line[open..].char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(open + at);
        }
    }
    None
}

/// A call's first two arguments change places, or a call on a value is left out.
fn calls(line: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (open, _) in line.match_indices('(') {
        let Some(close) = closing(line, open) else { continue };
        let inner = &line[open + 1..close];
        if let Some([first, second]) = first_two(inner) {
            let rest = &inner[first.len() + 2 + second.len()..];
            let swapped = format!("{}({second}, {first}{rest}{}", &line[..open], &line[close..]);
            all.push((format!("swap `{first}` and `{second}`"), swapped));
        }
        let before = &line[..open];
        let name = before.rfind(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(0);
        if before[name..].starts_with('.') {
            let end = close + 1 + usize::from(line[close + 1..].starts_with('?'));
            let left_out = &line[name..end];
            all.push((format!("leave out `{left_out}`"), format!("{}{}", &line[..name], &line[end..])));
            // The value may be a result without it.
            if left_out.ends_with('?') {
                all.push((
                    format!("leave out `{}`", &line[name..=close]),
                    format!("{}{}", &line[..name], &line[close + 1..]),
                ));
            }
        }
    }
    all
}

/// The first two of several arguments.
fn first_two(arguments: &str) -> Option<[&str; 2]> {
    let mut depth = 0;
    let mut commas = Vec::new();
    for (at, letter) in arguments.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => commas.push(at),
            _ => {}
        }
    }
    let &first = commas.first()?;
    let second = commas.get(1).copied().unwrap_or(arguments.len());
    Some([&arguments[..first], arguments.get(first + 2..second)?])
}

/// A number is one more, nothing, or twice as large.
fn constants(line: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '.' || letter == '_';
    let mut at = 0;
    while let Some(start) = line[at..].find(|letter: char| letter.is_ascii_digit()).map(|start| at + start) {
        let rest = &line[start..];
        let mut end = start + rest.find(|letter: char| !is_part(letter)).unwrap_or(rest.len());
        // A range or a method follows, and no fraction.
        if let Some(dot) = line[start..end].find('.')
            && !line[start + dot + 1..].starts_with(|letter: char| letter.is_ascii_digit())
        {
            end = start + dot;
        }
        let is_number = !line[..start]
            .ends_with(|letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.');
        at = end.max(start + 1);
        let number = &line[start..end];
        let new: Vec<String> = match (number.parse::<u64>(), number.parse::<f64>()) {
            _ if !is_number => continue,
            (Ok(number), _) => vec![(number + 1).to_string(), (2 * number + 2).to_string(), "0".to_owned()],
            (_, Ok(number)) => {
                vec![format!("{:?}", 2.0 * number), format!("{:?}", number + 1.0), "0.0".to_owned()]
            }
            _ => continue,
        };
        for new in new {
            all.push((format!("`{number}` is `{new}`"), format!("{}{new}{}", &line[..start], &line[end..])));
        }
    }
    all
}

/// A condition is turned around, or always or never holds.
fn conditions(line: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for word in ["if ", "while "] {
        let Some(start) = line.find(word).map(|start| start + word.len()) else { continue };
        let Some(end) = line[start..].find(" {").map(|length| start + length) else { continue };
        let condition = &line[start..end];
        if condition.starts_with("let ") {
            continue;
        }
        for new in [format!("!({condition})"), "true".to_owned(), "false".to_owned()] {
            all.push((
                format!("`{condition}` is `{new}`"),
                format!("{}{new}{}", &line[..start], &line[end..]),
            ));
        }
    }
    all
}
