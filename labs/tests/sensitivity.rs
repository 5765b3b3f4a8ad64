//! The book's statements about the model's guesses match the labs.

use std::fs;
use std::path::Path;

use crate::said;
use labs::sensitivity::{FILE, LabText, changed_sentences, changes, lines, unchanged};
use labs::{LABS, Listed};

fn written() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FILE)).unwrap()
}

const ANEW: &str = "book/sensitivity.txt is not what the labs say today. To write it anew, which takes an hour: \
                    cargo run --bin sensitivity";

/// One figure and one lab: all of them take too long for every day.
#[test]
fn the_file_has_what_turns_with_one_guess() {
    let (lab, card, figure) = (Listed::named("lab-03").unwrap(), "t4", "smallest_kernel");
    let plain = unchanged(lab, card);
    let mut found = Vec::new();
    for change in changes(card).into_iter().filter(|change| change.figure == figure) {
        found.extend(changed_sentences(lab, change, &plain).unwrap().iter().map(ToString::to_string));
    }
    let columns = [lab.name, card, figure];
    let is_of_it = |line: &&str| columns.iter().all(|column| line.split('\t').any(|part| part == *column));
    let text = written();
    assert_eq!(text.lines().filter(is_of_it).collect::<Vec<_>>(), found, "{ANEW}");
    let count = format!("sentences\t{}\t{card}\t{}", lab.name, plain.count());
    assert!(text.lines().any(|line| line == count), "{ANEW}");
}

/// Computing a changed sentence takes many runs, but the original sentence is in any run.
#[test]
fn the_file_has_the_sentences_of_today() {
    let text = written();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    for lab in LABS.iter().filter(|lab| lab.runs.iter().any(|run| run.name == "t4")) {
        let run = lab.runs.iter().find(|run| run.name == "t4").unwrap();
        let said = LabText::from(said::run(lab.name, &[run.flags, run.steady].concat()).clone());
        for line in &lines {
            match line[..] {
                ["sentences", name, "t4", count] if name == lab.name => {
                    assert_eq!(count, said.count().to_string(), "{name}: {ANEW}");
                }
                ["turn", name, section, "t4", .., before, _] if name == lab.name => {
                    assert!(said.has(section, before), "{name}, section {section}: `{before}`: {ANEW}");
                }
                _ => {}
            }
        }
    }
}

#[test]
#[ignore = "it runs every lab with every guess halved and doubled, which takes an hour"]
fn the_file_has_what_turns_with_any_guess() {
    let text = written();
    let mut known: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let all: Vec<&Listed> = LABS.iter().filter(|lab| lab.runs.iter().any(|run| run.name == "t4")).collect();
    let mut found = lines(&all, |_, _| ()).unwrap();
    known.sort_unstable();
    found.sort_unstable();
    assert_eq!(known, found, "{ANEW}");
}
