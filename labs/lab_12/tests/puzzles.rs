//! The puzzles' matrix: which gate each wrong kernel fails, and that right kernels pass.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use lab_12::cases;
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

#[test]
fn a_missing_brace_is_one_error_in_the_readers_file() {
    for puzzle in ALL {
        let cut = &puzzle.start[..puzzle.start.rfind('}').unwrap()];
        let rejected = puzzle.compile("my.cu", cut).err().unwrap();
        let text = rejected.text();
        assert!(
            text.starts_with("error: this `{` is not closed: a `}` is missing\n")
                && text.contains(" --> my.cu:"),
            "{text}"
        );
        assert_eq!(rejected.errors.0.len(), 1, "{text}");
    }
}

#[test]
fn a_judgement_begins_with_the_warnings_about_the_readers_file() {
    let puzzle = &ALL[0];
    let at = puzzle.start.rfind('}').unwrap();
    let text = format!("{}    float sum;\n    sum += 1;\n}}\n", &puzzle.start[..at]);
    let shown = lab_12::verdict::text(&judged(puzzle, &text), "Puzzle", "my.cu", "");
    assert!(
        shown.starts_with("Puzzle\n\nwarning: `sum` is read before it has a value\n  --> my.cu:"),
        "{shown}"
    );
    assert_eq!(shown.matches("warning: ").count(), 1, "{shown}");
}

fn described(judgement: &Judgement) -> String {
    lab_12::verdict::text(judgement, "", "my.cu", "")
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
            assert!(!judgement.is_right() && report.contains("Not yet"), "{report}");
            assert!(gates.insert(gate.to_owned()), "{}: two kernels fail `{gate}`", puzzle.name);
            assert!(!judgement.advice().is_empty(), "{}, {name}: no hint{report}", puzzle.name);
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

#[test]
fn cases_are_told_and_their_corrections_pass() {
    // The gate, the lines, and the smallest launch with the mistake.
    let wanted: [(&str, &str, &[u32], &str); 5] = [
        ("missing_barrier", "races in shared memory", &[20, 21], "n = 2, 1 block of 2 threads"),
        ("off_by_one", "reads outside an array", &[19], "n = 1, 1 block of 1 thread"),
        ("nobody_writes", "elements that nothing writes", &[], "n = 3, 1 block of 2 threads"),
        ("right_by_luck", "races in global memory", &[24, 27], "n = 2, 2 blocks of 1 thread"),
        ("one_block_size", "wrong elements", &[], "n = 257, 1 block of 512 threads"),
    ];
    assert!(wanted.iter().map(|case| case.0).eq(cases::ALL.iter().map(|case| case.name)));
    for (name, gate, lines, smallest) in wanted {
        let case = cases::find(name).unwrap();
        let judgement = case.judge("my.cu", case.source, &|_| None);
        let report = described(&judgement);
        assert_eq!(judgement.failed(), [gate], "{name}: {report}");
        assert!(
            report.contains(&format!("The smallest launch that fails: {smallest}\n")),
            "{name}: {report}"
        );
        if !lines.is_empty() {
            assert_eq!(judgement.fault.unwrap().0.lines("my.cu"), lines, "{name}");
        }
    }
    let fixed = kernels(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/fixed"));
    assert_eq!(fixed.len(), 6);
    for (name, text) in fixed {
        let case = cases::find(name.trim_end_matches("_2")).unwrap();
        let judgement = case.judge("my.cu", &text, &|_| None);
        assert!(judgement.is_right(), "{name}: {}", described(&judgement));
    }
    // A program that does not compare its results is not right.
    let silent = cases::ALL[0].judge("my.cu", "int main() { return 0; }", &|_| None);
    assert_eq!(silent.failed(), ["other errors"]);
    assert!(described(&silent).contains("without its last line"), "{}", described(&silent));
}

#[test]
fn a_kernel_may_use_the_names_of_the_sizes() {
    let puzzle = lab_12::puzzles::find("2").unwrap();
    let kernel = "template <int N> __device__ float times(float ROWS) { return ROWS * N; }
        __global__ void square(const float *a, float *out, int n) {
            const int K = blockIdx.x * blockDim.x + threadIdx.x;
            if (K < n) out[K] = times<1>(a[K]) * a[K];
        }";
    let judgement = judged(puzzle, kernel);
    assert!(judgement.is_right(), "{}", described(&judgement));
}

#[test]
fn a_kernel_with_another_name_or_with_errors_is_refused_at_its_line() {
    let puzzle = lab_12::puzzles::find("02-guard").unwrap();
    for (kernel, wanted) in [
        ("__global__ void squares(const float *a, float *out, int n) {}", "keep its name and parameters"),
        ("__global__ void square(float *a, int n) {}", "keep its name and parameters"),
        ("\n__global__ void square(const float *a, float *out, int n) { out[i] = 1; }", "--> my.cu:2:"),
    ] {
        let judgement = judged(puzzle, kernel);
        let report = described(&judgement);
        assert!(!judgement.is_right() && judgement.rejected.is_some(), "{report}");
        assert!(report.contains(wanted), "{report}");
    }
}

#[test]
fn each_gate_of_wrong_elements_has_its_own_hint() {
    let plain = lab_12::advice::of_elements("wrong elements", "");
    for gate in ALL.iter().flat_map(|puzzle| puzzle.gates()).filter(|gate| *gate != "wrong elements") {
        let hint = lab_12::advice::of_elements(gate, "");
        assert!(hint != plain, "{gate}");
    }
    assert!(
        lab_12::advice::of_elements("wrong elements", "out[0] = -nan, should be 1")
            .contains("0 divided by 0")
    );
}

#[test]
fn figures_are_rounded_before_they_are_compared() {
    use lab_12::limits::Bound;
    assert!(Bound::AtMost(4.0).holds(4.04) && !Bound::AtMost(4.0).holds(4.06));
    assert!(Bound::AtLeast(24.0).holds(23.96) && !Bound::AtLeast(24.0).holds(23.9));
}
