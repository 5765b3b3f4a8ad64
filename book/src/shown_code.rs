//! Checks that lab code on a page looks like a reader's, without the harness's recording and printing.

use std::sync::OnceLock;

use regex::Regex;

use crate::course::Course;
use crate::document::Page;
use crate::known_mistakes::Finding;
use crate::lab_code::anchor_of;
use crate::mistake::Mistake;

/// Patterns that a reader would not write, with the reason.
const FOREIGN: [(&str, &str); 4] = [
    (r"\blab\.", "it is the lab's own"),
    (
        r#"(?:^|[^\w.:])(?:text!|row!|exact\(|bytes\("|timed\(|machine_figure\(|measured\(|modelled\(|hardware\(|observed\(|raced\()"#,
        "it notes a figure",
    ),
    (r"\?\?", "it is two questions in one: give the inner result a name, or a function of its own"),
    (r"\|\(\)\|", "it is a closure of nothing: write a loop, or a function"),
];

pub fn findings(course: &Course, page: &Page) -> Vec<Finding> {
    let mut findings = Vec::new();
    for line in page.text.lines() {
        let inside = line.trim_end().strip_prefix("{{#lab-code ").and_then(|rest| rest.strip_suffix("}}"));
        let Some((lab, anchor)) = inside.and_then(|inside| inside.trim().split_once(' ')) else { continue };
        // Errors of the directive are reported elsewhere.
        let Ok(sources) = course.lab(lab).and_then(|lab| course.sources(lab)) else { continue };
        let Ok((file, first, code)) = anchor_of(&sources, anchor.trim()) else { continue };
        for (index, found, why) in harness(&code) {
            let what = format!("`{found}` stands in the code that {} shows (`{anchor}`): {why}", page.path);
            let mistake = Mistake { file: file.to_owned(), line: first + index, what };
            findings.push(Finding { mistake, key: format!("{anchor}: {found}") });
        }
    }
    findings
}

/// The harness calls in code: the index of the line, the words, and the reason against them.
fn harness(code: &str) -> Vec<(usize, &str, &'static str)> {
    static COMPILED: OnceLock<Vec<(Regex, &str)>> = OnceLock::new();
    let compile = |(pattern, why)| (Regex::new(pattern).expect("a test compiles it"), why);
    let compiled = COMPILED.get_or_init(|| FOREIGN.map(compile).into());
    let mut harness = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let line = line.split("//").next().unwrap_or_default();
        for (pattern, why) in compiled {
            if let Some(found) = pattern.find(line) {
                let words = found
                    .as_str()
                    .trim_start_matches(|letter: char| !"|?".contains(letter) && !letter.is_alphabetic());
                harness.push((index, words, *why));
            }
        }
    }
    harness
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harness_is_told_with_its_line_and_what_only_looks_like_it_is_not() {
        let code = "let held = collab.next(self.measured(1), labs::exactly(2), &x?.timed, bytes(5))?; // lab.print(1)??\n\
                    let y = (0..2).map(|()| x.to(device))??;\n\
                    lab.print(text!(\"{}\", exact(\"held\", held)));\n    [timed(\"a\", b)];\n";
        let told: Vec<(usize, &str)> = harness(code).iter().map(|(line, words, _)| (*line, *words)).collect();
        assert_eq!(told, [(1, "??"), (1, "|()|"), (2, "lab."), (2, "text!"), (3, "timed(")]);
    }
}
