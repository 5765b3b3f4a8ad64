//! `cargo course explain` knows what the labs and the tensor crate say, and whatever is pasted into it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use errors::{KINDS, Kind, Run, explain};
use labs::Listed;
use todevice::Error;

use crate::program::{Folder, done};

// The program has no library.
#[path = "../src/provoke.rs"]
mod provoke;

use provoke::{PROVOKED, provoke};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn recognised(text: &str) -> &'static str {
    explain(text).map_or("nothing", |explained| explained.kind.id)
}

fn said(error: &Error) -> String {
    format!("{}: {}", error.kind(), error.report())
}

#[test]
fn code_that_makes_an_error_makes_the_error_of_its_kind() {
    let provoked: BTreeSet<String> = PROVOKED.iter().map(|(name, _)| name.replace('_', "-")).collect();
    let promised = KINDS.iter().filter(|kind| matches!(kind.run, Some(Run::Here)));
    assert_eq!(promised.map(|kind| kind.id.to_owned()).collect::<BTreeSet<_>>(), provoked);
    for kind in &provoked {
        let (code, error) = provoke(kind).unwrap_or_else(|| panic!("{kind} makes no error"));
        assert_eq!(recognised(&said(&error)), kind, "{}", said(&error));
        assert!(code.starts_with("    ") && code.ends_with("?;"), "{code}");
    }
}

/// What a lab prints in a section, with its lines joined.
fn section(kind: &Kind) -> Option<String> {
    let Some(Run::Lab { number, section, run, flags }) = kind.run else { return None };
    let lab = Listed::named(&format!("lab-{number}")).unwrap();
    let known = lab.runs.iter().find(|known| known.name == run).unwrap_or_else(|| panic!("{}", kind.id));
    assert_eq!(flags, known.flags.join(" "), "{}", kind.id);
    let snapshot = fs::read_to_string(root().join(lab.snapshot(known))).unwrap();
    let (_, after) = snapshot.split_once(&format!("\n{section}. ")).unwrap();
    let next = format!("\n{}. ", section.parse::<u32>().unwrap() + 1);
    Some(after.split_once(&next).map_or(after, |(section, _)| section).to_owned())
}

#[test]
fn the_labs_print_the_errors_that_the_table_says_they_print() {
    let mut checked = 0;
    for kind in KINDS {
        let Some(text) = section(kind) else { continue };
        checked += 1;
        let explained = explain(&text).unwrap_or_else(|| panic!("{}:\n{text}", kind.id));
        let mut found = explained.also.iter().map(|kind| kind.id).chain([explained.kind.id]);
        assert!(found.any(|id| id == kind.id), "{} is not in\n{text}", kind.id);
    }
    assert!(checked >= 10);
}

/// The texts of all errors that the tensor crate has, with what varies left out.
fn templates() -> Vec<String> {
    fn files(folder: &Path, all: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => files(&path, all),
                false => all.push(path),
            }
        }
    }
    let mut all = Vec::new();
    files(&root().join("tensor/src"), &mut all);
    files(&root().join("gpu/src"), &mut all);
    let mut templates = Vec::new();
    for file in all.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
        let source = fs::read_to_string(file).unwrap();
        for (_, rest) in source.match_indices("#[error(").map(|(at, found)| source.split_at(at + found.len()))
        {
            let Some(literal) = rest.trim_start().strip_prefix('"') else { continue };
            let mut text = String::new();
            let mut letters = literal.chars();
            while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
                match letter {
                    '\\' => text.push(match letters.next() {
                        Some('n' | 't') => ' ',
                        Some(other) => other,
                        None => break,
                    }),
                    // What is filled in is a number here.
                    '{' => match letters.clone().next() {
                        Some('{') => drop(letters.next()),
                        _ => {
                            text.push('3');
                            letters.by_ref().find(|letter| *letter == '}');
                        }
                    },
                    letter => text.push(letter),
                }
            }
            templates.push(text);
        }
    }
    templates
}

#[test]
fn what_the_labs_print_of_the_crates_errors_is_known() {
    let folder = root().join("labs/tests/snapshots");
    let mut printed = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let words = fs::read_to_string(entry.unwrap().path()).unwrap();
        printed += &words.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let mut checked = 0;
    for template in templates() {
        let words = template.split_whitespace().collect::<Vec<_>>().join(" ");
        let longest = words.split('3').max_by_key(|part| part.len()).unwrap();
        let Some(at) = printed.find(longest).filter(|_| longest.len() >= 20) else { continue };
        checked += 1;
        // The message, with what a lab has filled in.
        let start = (at.saturating_sub(120)..=at).find(|at| printed.is_char_boundary(*at)).unwrap();
        assert_ne!(recognised(&printed[start..at + longest.len()]), "nothing", "{template}");
    }
    assert!(checked >= 10, "{checked}");
}

/// Those that no page could say more of than they do themselves, or of which only what varies is missing here.
const WITHOUT_A_STORY: &str = include_str!("errors_without_a_story.txt");

#[test]
fn the_crates_errors_are_known_but_for_those_that_are_listed() {
    let is_unknown =
        |text: &String| text.len() > 12 && recognised(&format!("RuntimeError: {text}")) == "nothing";
    let lines = templates()
        .into_iter()
        .filter(is_unknown)
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let (unknown, listed) =
        (lines.collect::<BTreeSet<_>>(), WITHOUT_A_STORY.lines().map(str::to_owned).collect());
    let new: Vec<&String> = unknown.difference(&listed).collect();
    assert!(
        new.is_empty(),
        "add a text by which its kind is known (labs/errors/src/kinds), or a line to the list:\n{new:#?}"
    );
    let gone: Vec<&String> = listed.difference(&unknown).collect();
    assert!(gone.is_empty(), "no longer without a story: {gone:#?}");
}

#[test]
fn a_message_is_read_from_standard_input_too() {
    let folder = Folder::new("pasted errors");
    let message = "Traceback (most recent call last):\n\u{1b}[31mRuntimeError\u{1b}[0m: mat1 and mat2 shapes cannot be mul\ntiplied (64x512 and 2048x10)\n";
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(message.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    for (words, input) in [
        (&["explain"][..], message.as_bytes()),
        (&["explain", "-"], message.as_bytes()),
        (&["explain"], &utf16),
    ] {
        fs::write(folder.0.join("input"), input).unwrap();
        let file = fs::File::open(folder.0.join("input")).unwrap();
        let told = done(folder.command(words).stdin(Stdio::from(file)));
        assert!(
            told.code == 0
                && told.out.contains("rows of 512 numbers. The layer")
                && told.out.contains("rows of 2048 and makes"),
            "{told:?}"
        );
        assert!(!told.out.contains('\u{1b}'), "{told:?}");
    }
    let nothing = folder.run(&["explain"]);
    assert!(nothing.code == 2 && nothing.err.contains("no error to explain"), "{nothing:?}");
    assert_eq!(nothing.err.lines().count(), 1);
}

#[test]
fn what_is_unknown_gets_one_line_without_what_was_pasted() {
    let folder = Folder::new("unknown errors");
    for (words, what) in [
        (
            &["explain", "the graph went backward a second time \u{1b}[2J"][..],
            "similar messages: `Trying to backward",
        ),
        (
            &["explain", "ModuleNotFoundError: No module named '\u{1b}[2Jx'"],
            "`cargo course explain --list` lists all",
        ),
        (&["explain", "GPU0404"], "the codes are GPU0001, GPU0002 and GPU0003"),
        (&["explain", "--run", "\u{1b}[2J"], "unknown kind of error"),
        (&["explain", "--run", "fork"], "`cargo run --bin lab-09 -- --gpu sim:t4 --section 6`"),
    ] {
        let told = folder.run(words);
        assert!(told.code == 2 && told.out.is_empty() && told.err.contains(what), "{told:?}");
        assert!(told.err.lines().count() == 1 && !told.err.contains('\u{1b}'), "{told:?}");
    }
}

#[test]
fn code_that_makes_an_error_is_shown_with_it() {
    let folder = Folder::new("made errors");
    let told = folder.run(&["explain", "--run", "second-backward"]);
    assert!(told.code == 0, "{told:?}");
    for part in [
        "loss.backward()?;\n    loss.backward()?;\n",
        "RuntimeError: Trying to backward through the graph a second time",
    ] {
        assert!(told.out.contains(part), "{}", told.out);
    }
    let told = folder.run(&["explain", "--list"]);
    assert_eq!(told.out.lines().count(), KINDS.len());
    let told = folder.run(&[
        "explain",
        "-- Process 1 terminated with the following error:\nRuntimeError: Tensors must be contiguous",
    ]);
    assert!(told.out.starts_with("Tensors must be contiguous\n"), "{told:?}");
}

/// An error without a code, which an exercise's report would only repeat.
#[test]
fn the_report_of_an_exercise_names_the_kind_of_an_error() {
    let folder = Folder::new("errors in exercises");
    let solution = folder.run(&["solution", "02-batch"]).out;
    let (head, body) = solution.split_once("{\n").unwrap();
    folder.write("02-batch.rs", &format!("{head}{{\n    Tensor::ones(&[8])?.item()?;\n{body}"));
    let told = folder.run(&["check", "02-batch"]);
    assert!(told.out.contains("cannot be converted to Scalar"), "{told:?}");
    assert!(told.out.contains("`cargo course explain to-scalar` explains this error."), "{told:?}");
}
