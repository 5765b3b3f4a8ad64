//! What somebody else wrote reaches a terminal as text: an argument, the name of a file, what a student's code says.

use std::fs;
use std::path::Path;

use exercises::printable::is_printable;

use crate::program::{Done, Folder};

/// Clears the screen, sets the title, turns the direction of text.
const OBEYED: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{202e}\u{200f}";

fn is_text(done: &Done) -> bool {
    let text = |text: &str| text.chars().all(|letter| is_printable(letter) || matches!(letter, '\n' | '\t'));
    text(&done.out) && text(&done.err)
}

#[test]
fn arguments_and_answers_come_back_as_text() {
    let folder = Folder::new("the curious");
    for command in [
        "show", "check", "run", "watch", "hint", "solution", "reset", "read", "quiz", "explain", "grade",
        "list", "",
    ] {
        let done = folder.run(&if command.is_empty() { vec![OBEYED] } else { vec![command, OBEYED] });
        assert!(done.code > 0 && done.err.starts_with("error: ") && is_text(&done), "{command}: {done:?}");
    }
    for words in [
        &["check", "--", OBEYED][..],
        &["run", "--gpu", OBEYED],
        &["report", "--format", OBEYED],
        &["hint", "02-batch", OBEYED],
        &["completions", OBEYED],
    ] {
        let done = folder.run(words);
        assert!(done.code == 2 && done.err.lines().count() == 1 && is_text(&done), "{words:?}: {done:?}");
    }
    let done = folder.tell(&["quiz", "2"], &format!("{OBEYED}\na\n"));
    assert!(done.code == 0 && done.out.contains(r"`\u{1b}[2j") && is_text(&done), "{done:?}");
}

#[test]
fn names_of_files_come_back_as_text() {
    let folder = Folder::new(&format!("{} names", OBEYED.replace('\u{7}', "")));
    fs::write(folder.0.join("02-batch.rs"), "fn").unwrap();
    for words in [&[][..], &["show", "02-batch"], &["check", "02-batch"], &["reset", "02-batch"]] {
        let done = folder.run(words);
        assert!(is_text(&done) && done.out.contains(r"course of \u{1b}[2J"), "{words:?}: {done:?}");
    }
    folder.write("progress.json", "");
    let done = folder.run(&["list"]);
    assert!(done.code == 2 && is_text(&done), "{done:?}");
}

#[test]
fn what_a_student_writes_comes_back_as_text() {
    let folder = Folder::new("the mischievous");
    let solution = folder.run(&["solution", "02-batch"]).out;
    let (before, body) = solution.split_once("\n    let mut losses").unwrap();
    let escaped: String = OBEYED.chars().map(|letter| letter.escape_unicode().to_string()).collect();
    for (what, line) in [
        ("prints", format!("println!(\"{escaped}\\x1b[31mred\"); eprintln!(\"{escaped}\");")),
        ("panics", format!("if true {{ panic!(\"{escaped}\") }}")),
        ("returns an error", format!("if true {{ return Err(Error::custom(\"{escaped}\")) }}")),
        ("does not compile", format!("let x: u8 = \"{OBEYED}\";")),
        ("is refused", format!("let x = \"{OBEYED}\"; std::process::exit(0);")),
    ] {
        folder.write("02-batch.rs", &format!("{before}\n    {line}\n    let mut losses{body}"));
        for command in ["check", "run"] {
            let done = folder.run(&[command, "02-batch"]);
            assert!(is_text(&done), "{command}, {what}: {done:?}");
            if what == "prints" {
                assert!(done.out.contains(r"\u{1b}[31mred"), "{}", done.out);
            }
        }
        let path = folder.0.display().to_string();
        for format in ["text", "csv", "json", "junit"] {
            if what != "prints" {
                break;
            }
            let done = Folder::new("their teacher").run(&["grade", &path, "--format", format]);
            assert!(done.code == 0 && is_text(&done), "{format}: {done:?}");
        }
    }
}

/// All that programs print goes through `labs::stdio`, which lets nothing else through.
#[test]
fn nothing_is_printed_in_another_way() {
    fn look(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                look(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let is_code = |line: &&str| !line.trim_start().starts_with("//");
                let prints = |line: &&str| {
                    ["println!(", "print!("]
                        .iter()
                        .any(|macro_name| line.trim_start().starts_with(macro_name))
                        || ["eprintln!(", "eprint!("].iter().any(|macro_name| line.contains(macro_name))
                };
                let lines = text.lines().filter(is_code).filter(prints);
                found.extend(lines.map(|line| format!("{}: {}", path.display(), line.trim())));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for folder in ["labs/src", "course/src", "book/src", "drawing/src", "tests/src", "labs/exercises/src"] {
        look(&root.join(folder), &mut found);
    }
    // Processes that run a student's code, or a teacher's: another program reads what they print.
    found.retain(|line| !line.contains("child.rs: ") && !line.contains("own/mod.rs: "));
    assert_eq!(found, [""; 0]);
}
