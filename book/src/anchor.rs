//! The part of a source file between `// ANCHOR: name` and `// ANCHOR_END: name`.

/// The lines of an anchor, with the indentation they share taken off, and the number of the first.
/// Marks of other anchors are left out. The error says what would be right.
pub fn part(source: &str, name: &str) -> Result<(usize, String), String> {
    let is = |line: &str, mark: &str| marked(line, mark) == Some(name);
    let numbered = || source.lines().enumerate();

    let starts: Vec<usize> =
        numbered().filter(|(_, line)| is(line, "ANCHOR")).map(|(index, _)| index).collect();
    let [start] = starts[..] else {
        let names: Vec<&str> = source.lines().filter_map(|line| marked(line, "ANCHOR")).collect();
        return Err(match starts.is_empty() {
            true => format!("has no anchor `{name}`; it has {}", names.join(" | ")),
            false => format!("has {} anchors `{name}`: give each a name of its own", starts.len()),
        });
    };
    let end = numbered().skip(start).find(|(_, line)| is(line, "ANCHOR_END"));
    let Some((end, _)) = end else {
        return Err(format!("lacks `// ANCHOR_END: {name}` after line {}", start + 1));
    };
    let lines: Vec<&str> = source.lines().skip(start + 1).take(end - start - 1).collect();
    Ok((start + 2, dedent(&without_marks(&lines.join("\n")))))
}

/// A source as a reader wants it: without the marks.
pub fn without_marks(source: &str) -> String {
    let is_mark = |line: &&str| marked(line, "ANCHOR").or(marked(line, "ANCHOR_END")).is_some();
    source.lines().filter(|line| !is_mark(line)).collect::<Vec<_>>().join("\n")
}

fn marked<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.trim().strip_prefix("// ")?.strip_prefix(mark)?.strip_prefix(": ").map(str::trim)
}

/// Code without the indentation that its lines share.
pub fn dedent(code: &str) -> String {
    let indents = code.lines().filter(|line| !line.trim().is_empty());
    let shared = indents.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    code.lines().map(|line| line.get(shared..).unwrap_or("")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
fn run() {
    // ANCHOR: outer
    one();
    // ANCHOR: inner
    if two() {
        three();
    }
    // ANCHOR_END: inner

    four();
    // ANCHOR_END: outer
    // ANCHOR: open
}
";

    #[test]
    fn an_anchor_is_its_lines_without_their_shared_indentation() {
        assert_eq!(part(SOURCE, "inner"), Ok((5, "if two() {\n    three();\n}".to_owned())));
        let outer = "one();\nif two() {\n    three();\n}\n\nfour();";
        assert_eq!(part(SOURCE, "outer"), Ok((3, outer.to_owned())));
    }

    #[test]
    fn a_wrong_anchor_is_told_what_would_be_right() {
        let error = |source, name| part(source, name).unwrap_err();
        assert_eq!(error(SOURCE, "inn"), "has no anchor `inn`; it has outer | inner | open");
        assert_eq!(error(SOURCE, "open"), "lacks `// ANCHOR_END: open` after line 12");
        let twice = format!("{SOURCE}{SOURCE}");
        assert_eq!(error(&twice, "inner"), "has 2 anchors `inner`: give each a name of its own");
    }
}
