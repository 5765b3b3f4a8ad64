//! The text that a log writes before each line of a message: the rank, the date, the name of the service, a line number, the mark of a quotation.
//! The page's module contains this code, so all prefixes share one small reader: [`run`].

/// The lines without the prefixes that they share, and without text that no message begins with.
pub fn without(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split('\n').map(alone).collect();
    // One may stand before another: a date before a rank before a quotation's mark.
    for _ in 0..4 {
        let Some(stripped) = COMMON.iter().find_map(|prefix| all(&lines, *prefix)) else { break };
        lines = stripped;
    }
    let shared = shared(&lines);
    lines.iter().map(|line| line.trim_start().strip_prefix(shared).unwrap_or(line)).collect()
}

/// The beginning that all lines share, up to a blank or a colon, if it looks like a name and not like words of a message: `[1,0]<stderr>:`,
/// `pod/train-0 `, `- `.
fn shared<'a>(lines: &[&'a str]) -> &'a str {
    let mut texts = lines.iter().map(|line| line.trim_start()).filter(|text| !text.is_empty());
    let mut shared = texts.next().unwrap_or_default();
    let mut is_one = true;
    for text in texts {
        is_one = false;
        let common = shared.bytes().zip(text.bytes()).take_while(|(one, other)| one == other).count();
        // A letter may have more than one byte.
        shared = shared.get(..common).unwrap_or_default();
    }
    let end = shared.rfind(": ").max(shared.rfind(" ")).or_else(|| shared.rfind(":")).map_or(0, |at| at + 1);
    let shared = &shared[..end];
    let is_message = ["rror", "arning", "raceback", "File "].iter().any(|word| shared.contains(word));
    if is_one || is_message || run(shared, NAME).1.is_empty() { "" } else { shared }
}

/// Ordinary words consist of these characters alone.
const NAME: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ' ,.";

/// Takes a prefix off a line.
type Prefix = fn(&str) -> Option<&str>;

/// Prefixes that count only if every line has one.
const COMMON: [Prefix; 5] = [dated, syslog, piped, counted, marked];

/// All lines without this prefix, if each that is not empty has it.
fn all<'a>(lines: &[&'a str], prefix: Prefix) -> Option<Vec<&'a str>> {
    let mut stripped = Vec::new();
    let mut is_any = false;
    for line in lines {
        let text = line.trim_start();
        // The command that printed them may stand above.
        if text.is_empty() || text.starts_with("$ ") {
            stripped.push(*line);
        } else {
            is_any = true;
            stripped.push(alone(prefix(text)?));
        }
    }
    is_any.then_some(stripped)
}

/// Without a prefix that says by itself that it is one: `[rank0]:`, `[default0]:`, Ray's `(worker pid=1)`, torchrun's
/// `E0304 12:22:11.222000 1404 api.py:882]`, pytest's `E   `, and the `>` of a quotation.
fn alone(line: &str) -> &str {
    let mut rest = line;
    loop {
        let start = rest.trim_start();
        let next = bracketed(start, "[rank")
            .or_else(|| bracketed(start, "[default"))
            .or_else(|| ray(start))
            .or_else(|| glog(start))
            .or_else(|| start.strip_prefix(">"))
            .or_else(|| start.strip_prefix("E   "));
        match next {
            Some(after) => rest = after.strip_prefix(" ").unwrap_or(after),
            None => return rest,
        }
    }
}

const DIGITS: &str = "0123456789";
const CLOCK: &str = "0123456789:.,+-Z";

/// The letters at the start of a text that are some of these, and the rest.
fn run<'a>(text: &'a str, letters: &str) -> (&'a str, &'a str) {
    let end = text.bytes().position(|byte| !letters.as_bytes().contains(&byte));
    text.split_at(end.unwrap_or(text.len()))
}

/// The rest of a text that begins with a time of day.
fn clock(text: &str) -> Option<&str> {
    let (time, rest) = run(text, CLOCK);
    (time.len() >= 8 && time.as_bytes()[2] == b':').then_some(rest)
}

/// The text after a blank, or the empty text.
fn gap(rest: &str) -> Option<&str> {
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(" ") }
}

/// `[rank3]:`
fn bracketed<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    run(line.strip_prefix(name)?, DIGITS).1.strip_prefix("]:")
}

/// `(RayTrainWorker pid=1234)` and `(RayTrainWorker pid=1234, ip=10.0.0.2)`
fn ray(line: &str) -> Option<&str> {
    let (inside, after) = line.strip_prefix("(")?.split_once(")")?;
    inside.contains(" pid=").then_some(after)
}

/// `E0304 12:22:11.222000 1404 torch/distributed/elastic/multiprocessing/api.py:882]`
fn glog(line: &str) -> Option<&str> {
    let (day, rest) = run(run(line, "IWEF").1, DIGITS);
    let rest = clock(rest.strip_prefix(" ")?)?;
    (day.len() == 4 && line.len() > day.len() + rest.len()).then_some(rest.split_once("]")?.1)
}

/// `2024-03-04 12:22:11,222 [ERROR] `, `[2024-03-04T12:22:11Z] ` and `12:22:11 `
fn dated(line: &str) -> Option<&str> {
    let line = line.strip_prefix("[").unwrap_or(line);
    let (date, rest) = run(line, "0123456789-/");
    let rest = match date.len() == 10 {
        true => clock(rest.strip_prefix("T").or_else(|| rest.strip_prefix(" "))?)?,
        false => clock(line)?,
    };
    let (mark, after) = run(rest, " -|:[]");
    // The level, if there is one. Without it a bracket may be the message's own.
    let level = ["ERROR", "WARNING", "INFO", "CRITICAL", "DEBUG", "stderr F", "stdout F", "stderr", "stdout"];
    let after = level.iter().find_map(|name| after.strip_prefix(name)).map(|after| run(after, " -|:[]"));
    let after = match after {
        Some((mark, after)) if !mark.is_empty() => after,
        _ => gap(run(rest, ":]|").1)?,
    };
    (!mark.is_empty() || rest.is_empty()).then_some(after)
}

/// `Mar  4 12:22:11 host python[1234]: `
fn syslog(line: &str) -> Option<&str> {
    let (month, rest) = line.split_once(" ")?;
    let rest = clock(run(rest.trim_start(), DIGITS).1.strip_prefix(" ")?)?;
    let (_, after) = rest.split_once(":")?;
    if month.len() == 3 { gap(after) } else { None }
}

/// `trainer-1  | ` and `  12 | `
fn piped(line: &str) -> Option<&str> {
    let (name, after) = line.split_once("|")?;
    if name.trim_end().contains(" ") { None } else { gap(after) }
}

/// `0: ` of `srun --label`
fn counted(line: &str) -> Option<&str> {
    let (number, after) = run(line, DIGITS);
    if number.is_empty() { None } else { gap(after.strip_prefix(":")?) }
}

/// `# `, `// ` and `+ `, the marks of a comment and of a change
fn marked(line: &str) -> Option<&str> {
    let (mark, after) = run(line, "#/+");
    if mark.is_empty() { None } else { gap(after) }
}
