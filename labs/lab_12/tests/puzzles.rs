//! The puzzles' matrix: which gate each wrong kernel fails, and that right kernels pass.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use lab_12::judge::Judgement;
use lab_12::puzzles::{ALL, Puzzle};

fn folder(puzzle: &Puzzle) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("puzzles").join(puzzle.name)
}

/// The kernels in a folder: their names and texts.
fn kernels(folder: &Path) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap_or_else(|trouble| panic!("{}: {trouble}", folder.display()))
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
        })
        .collect();
    all.sort();
    all
}

fn judged(puzzle: &Puzzle, text: &str) -> Judgement {
    puzzle.judge("my.cu", text, &|_| None)
}

fn described(judgement: &Judgement) -> String {
    lab_12::verdict::text(judgement, "", "my.cu")
}

#[test]
fn each_wrong_kernel_fails_its_own_gate() {
    let mut troubles = Vec::new();
    for puzzle in ALL {
        let wrong = kernels(&folder(puzzle).join("wrong"));
        assert_eq!(wrong.len(), 8, "{}", puzzle.name);
        let mut gates = HashSet::new();
        for (name, text) in &wrong {
            let gate = text.lines().next().and_then(|line| line.strip_prefix("// Fails: ")).unwrap();
            let judgement = judged(puzzle, text);
            let report = described(&judgement);
            if judgement.failed() != [gate] {
                troubles.push(format!("{}, {name}: not `{gate}` alone:{report}", puzzle.name));
                continue;
            }
            assert!(!judgement.is_right() && report.contains("Not yet."), "{report}");
            assert!(gates.insert(gate.to_owned()), "{}: two kernels fail `{gate}`", puzzle.name);
            // A finding of the checks points to the marked line. Wrong elements and counters have no line.
            let marked = text.lines().position(|line| line.contains("// <-- here")).unwrap() as u32 + 1;
            if let Some((fault, _)) = &judgement.fault
                && fault.element.is_none()
            {
                let lines = fault.lines("my.cu");
                if !lines.contains(&marked) || !report.contains(&format!("my.cu:{marked}:")) {
                    troubles.push(format!("{}, {name}: not line {marked}:{report}", puzzle.name));
                }
            }
        }
    }
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}

#[test]
fn right_kernels_pass_in_several_styles() {
    for puzzle in ALL {
        let mut right = kernels(&folder(puzzle).join("other"));
        assert!(right.len() >= 2, "{}", puzzle.name);
        right.push(("solution".to_owned(), fs::read_to_string(folder(puzzle).join("solution.cu")).unwrap()));
        for (name, text) in right {
            let judgement = judged(puzzle, &text);
            assert!(judgement.is_right(), "{}, {name}: {}", puzzle.name, described(&judgement));
        }
    }
}

#[test]
fn the_file_to_begin_with_compiles_and_is_not_right_yet() {
    for puzzle in ALL {
        let judgement = judged(puzzle, puzzle.start);
        let report = described(&judgement);
        assert!(judgement.rejected.is_none() && !judgement.is_right(), "{}: {report}", puzzle.name);
        assert!(report.contains("first wrong") || judgement.failed().len() == 1, "{report}");
    }
}
