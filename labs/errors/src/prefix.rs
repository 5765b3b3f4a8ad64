//! What a log writes before each line of a message: the rank, the date, the name of the service, a line number, the mark of a quotation.

/// Lines without what stands before all of them, and without what no message begins with.
pub fn without(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split('\n').map(alone).collect();
    // One may stand before another: a date before a rank before a quotation's mark.
    for _ in 0..4 {
        let Some(stripped) = COMMON.iter().find_map(|prefix| all(&lines, *prefix)) else { break };
        lines = stripped.into_iter().map(alone).collect();
    }
    lines
}

/// All lines without this prefix, if each that is not empty has it.
fn all<'a>(lines: &[&'a str], prefix: fn(&str) -> Option<&str>) -> Option<Vec<&'a str>> {
    let mut is_any = false;
    let stripped = lines.iter().map(|line| {
        // The command that printed them may stand above.
        if line.trim().is_empty() || line.trim_start().starts_with("$ ") {
            return Some(*line);
        }
        is_any = true;
        // An empty line of the message may have lost the blank behind its prefix.
        prefix(line.trim_start()).or_else(|| (prefix(&format!("{} ", line.trim())) == Some("")).then_some(""))
    });
    let stripped: Option<Vec<&str>> = stripped.collect();
    stripped.filter(|_| is_any)
}

/// Without a prefix that says by itself that it is one: `[rank0]:`, `[default0]:`, Ray's `(worker pid=1)`, torchrun's
/// `E0304 12:22:11.222000 1404 api.py:882]`, pytest's `E   `, and the `>` of a quotation.
fn alone(line: &str) -> &str {
    let mut rest = line;
    loop {
        let start = rest.trim_start();
        let next = numbered(start, "[rank")
            .or_else(|| numbered(start, "[default"))
            .or_else(|| ray(start))
            .or_else(|| glog(start))
            .or_else(|| start.strip_prefix('>'))
            .or_else(|| start.strip_prefix("E   "));
        match next {
            Some(after) => rest = after.strip_prefix(' ').unwrap_or(after),
            None => return rest,
        }
    }
}

/// `[rank3]:`
fn numbered<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    digits(line.strip_prefix(name)?)?.1.strip_prefix("]:")
}

/// `(RayTrainWorker pid=1234)` and `(RayTrainWorker pid=1234, ip=10.0.0.2)`
fn ray(line: &str) -> Option<&str> {
    let (inside, after) = line.strip_prefix('(')?.split_once(')')?;
    inside.contains(" pid=").then_some(after)
}

/// `E0304 12:22:11.222000 1404 torch/distributed/elastic/multiprocessing/api.py:882]`
fn glog(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(['I', 'W', 'E', 'F'])?;
    let (day, rest) = digits(rest)?;
    let rest = clock(rest.strip_prefix(' ')?)?;
    let (place, after) = rest.split_once(']')?;
    (day.len() == 4 && place.contains(':')).then_some(after)
}

/// What counts only where it stands before every line.
const COMMON: [fn(&str) -> Option<&str>; 7] = [
    dated,
    syslog,
    piped,
    counted,
    |line| marked(line, "#"),
    |line| marked(line, "//"),
    |line| marked(line, "+"),
];

/// `2024-03-04 12:22:11,222 [ERROR] ` and `[2024-03-04T12:22:11Z] `
fn dated(line: &str) -> Option<&str> {
    let bracketed = line.strip_prefix('[');
    let (year, rest) = digits(bracketed.unwrap_or(line))?;
    let (month, rest) = digits(rest.strip_prefix(['-', '/'])?)?;
    let (day, rest) = digits(rest.strip_prefix(['-', '/'])?)?;
    let rest = clock(rest.strip_prefix(['T', ' '])?)?;
    let rest = if bracketed.is_some() { rest.trim_start().strip_prefix(']')? } else { rest };
    ([year, month, day].map(str::len) == [4, 2, 2] && rest.starts_with([' ', ':', '|'])).then(|| level(rest))
}

/// `12:22:11.222000+01:00`
fn clock(line: &str) -> Option<&str> {
    let (_, rest) = digits(line)?;
    let (_, rest) = digits(rest.strip_prefix(':')?)?;
    let (_, mut rest) = digits(rest.strip_prefix(':')?)?;
    if let Some((_, after)) = rest.strip_prefix(['.', ',']).and_then(digits) {
        rest = after;
    }
    if let Some(after) = rest.strip_prefix('Z') {
        return Some(after);
    }
    let zone = rest.strip_prefix(['+', '-']).and_then(digits);
    Some(zone.map_or(rest, |(_, after)| {
        after.strip_prefix(':').and_then(digits).map_or(after, |(_, after)| after)
    }))
}

/// Without the level behind a date: ` - ERROR - `, ` [ERROR] `, ` | ERROR | `.
fn level(line: &str) -> &str {
    const LEVELS: [&str; 10] =
        ["TRACE", "DEBUG", "INFO", "WARNING", "WARN", "ERROR", "CRITICAL", "FATAL", "stderr", "stdout"];
    let mark = |letter: char| " -|:[]".contains(letter);
    let start = line.trim_start_matches(mark);
    for name in LEVELS {
        if let Some(after) = start.strip_prefix(name)
            && after.starts_with(mark)
        {
            return after.trim_start_matches(mark);
        }
    }
    // A bracket here may be the message's own.
    line.trim_start_matches([':', '|']).strip_prefix(' ').unwrap_or(line)
}

/// `Mar  4 12:22:11 host python[1234]: `
fn syslog(line: &str) -> Option<&str> {
    let (month, rest) = line.split_once(' ')?;
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = digits(rest.trim_start())?;
    let (_, rest) = clock(rest.strip_prefix(' ')?)?.strip_prefix(' ')?.split_once(' ')?;
    let (program, after) = rest.split_once(": ")?;
    (MONTHS.contains(&month) && !program.contains(' ')).then_some(after)
}

/// `trainer-1  | ` and `  12 | `
fn piped(line: &str) -> Option<&str> {
    let (name, after) = line.split_once('|')?;
    let name = name.trim_end();
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    (name.chars().all(is_name) && after.starts_with(' ')).then(|| &after[1..])
}

/// `0: ` of `srun --label`
fn counted(line: &str) -> Option<&str> {
    digits(line)?.1.strip_prefix(": ")
}

/// `# `, the mark of a comment
fn marked<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.strip_prefix(mark)?.strip_prefix(' ')
}

/// The digits that a text begins with, one at least, and what follows them.
fn digits(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    (rest.len() < text.len()).then(|| text.split_at(text.len() - rest.len()))
}
