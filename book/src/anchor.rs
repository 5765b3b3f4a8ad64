//! The part of a source file between `// ANCHOR: name` and `// ANCHOR_END: name`; in Python, `# ANCHOR: name`.

use crate::mistake::Mistake;

/// The number of columns of a page. `labs/src/rustfmt.toml` has the same limit, but rustfmt does not break long
/// comments and strings.
pub const PAGE_WIDTH: usize = 88;

/// The lines of an anchor without their common indentation and without marks of other anchors, and the number of the
/// first line. The error suggests a fix.
pub fn part(source: &str, name: &str) -> Result<(usize, String), String> {
    let (line, code) = with_marks(source, name)?;
    Ok((line, without_marks(&code)))
}

pub fn too_wide(file: &str, source: &str, name: &str) -> Vec<Mistake> {
    let (first, code) = with_marks(source, name).unwrap_or_default();
    let widths = code.lines().map(|line| line.chars().count());
    let wide = widths.enumerate().filter(|(_, width)| *width > PAGE_WIDTH);
    wide.map(|(index, width)| Mistake {
        file: file.to_owned(),
        line: first + index,
        what: format!(
            "the anchor `{name}` is {width} columns wide here: a page has room for {PAGE_WIDTH}, so break the line"
        ),
    })
    .collect()
}

fn with_marks(source: &str, name: &str) -> Result<(usize, String), String> {
    let is = |line: &str, mark: &str| marked(line, mark) == Some(name);
    let lines: Vec<&str> = source.lines().collect();
    let starts: Vec<usize> = (0..lines.len()).filter(|index| is(lines[*index], "ANCHOR")).collect();
    let [start] = starts[..] else {
        let names: Vec<&str> = names(source).map(|(_, name)| name).collect();
        return Err(match starts.is_empty() {
            true => format!("has no anchor `{name}`; it has {}", names.join(" | ")),
            false => format!("has {} anchors `{name}`: give each its own name", starts.len()),
        });
    };
    let Some(length) = lines[start + 1..].iter().position(|line| is(line, "ANCHOR_END")) else {
        return Err(format!("lacks `ANCHOR_END: {name}` after line {}", start + 1));
    };
    Ok((start + 2, dedent(&lines[start + 1..][..length].join("\n"))))
}

pub fn without_marks(source: &str) -> String {
    let is_mark = |line: &&str| marked(line, "ANCHOR").or(marked(line, "ANCHOR_END")).is_some();
    source.lines().filter(|line| !is_mark(line)).collect::<Vec<_>>().join("\n")
}

/// The anchors of a source, each with the number of the line that opens it.
pub fn names(source: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(source.lines()).filter_map(|(line, text)| Some((line, marked(text, "ANCHOR")?)))
}

fn marked<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let line = line.trim_ascii();
    let comment = line.strip_prefix("// ").or(line.strip_prefix("# "))?;
    comment.strip_prefix(mark)?.strip_prefix(": ").map(str::trim_ascii)
}

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
    fn a_line_that_a_page_has_no_room_for_is_told_with_its_place() {
        let line = |width: usize| format!("    // {}\n", "x".repeat(width - 3));
        let source = format!(
            "    // ANCHOR: all\n{}    // ANCHOR: part\n{}    // ANCHOR_END: part\n    // ANCHOR_END: all\n",
            line(88),
            line(89)
        );
        for name in ["all", "part"] {
            let told = crate::mistake::lines(&too_wide("lab.rs", &source, name));
            let what = "is 89 columns wide here: a page has room for 88, so break the line";
            assert_eq!(told, [format!("lab.rs:4: the anchor `{name}` {what}")]);
        }
        assert_eq!(too_wide("lab.rs", SOURCE, "outer"), []);
    }

    #[test]
    fn a_wrong_anchor_is_told_what_would_be_right() {
        let error = |source, name| part(source, name).unwrap_err();
        assert_eq!(error(SOURCE, "inn"), "has no anchor `inn`; it has outer | inner | open");
        assert_eq!(error(SOURCE, "open"), "lacks `ANCHOR_END: open` after line 12");
        let twice = format!("{SOURCE}{SOURCE}");
        assert_eq!(error(&twice, "inner"), "has 2 anchors `inner`: give each its own name");
    }
}
