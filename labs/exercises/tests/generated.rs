//! Mistakes that nobody thought of: solutions with a statement dropped, doubled or swapped with the next, a device or a flag
//! changed, a number made one more. Each that compiles is rejected; or does what the solution does, to the last call, on inputs
//! held out; or is listed here with the reason why it is right too.

use std::fs;
use std::path::{Path, PathBuf};

use exercises::check::{Compiled, compile, run};
use exercises::{EXERCISES, Exercise, Seen, Verdict, rules};

use crate::matrix::{folder, library};

const HELD_OUT: [u64; 2] = [4_711, 90_210];

/// What is right although it is no solution of ours: the exercise, a part of what was done to it, and why.
const RIGHT_TOO: &[(&str, &str, &str)] = &[
    ("01-one-by-one", "double 9: let lengths", TWICE),
    ("01-portable", "double 12: let x", TWICE),
    ("01-portable", "double 13: let squares", TWICE),
    ("02-batch", "double 18: let loss", TWICE),
    ("02-mask", "double 20: let scores", TWICE),
    ("02-mask", "double 33: let place", TWICE),
    ("02-mask", "double 35: let later", TWICE),
    ("03-loop", "double 21: let loss", TWICE),
    ("03-loop", "double 25: losses.push", "With each loss twice in the list, the mean is the same."),
    ("03-item", "double 16: let mut total", TWICE),
    ("03-item", "double 18: let loss", TWICE),
    ("03-optimizer", "double 23: let features", TWICE),
    ("03-optimizer", "double 24: let loss", TWICE),
    ("04-no-grad", "double 12: let loss", TWICE),
    ("04-accumulate", "double 21: let loss", TWICE),
    ("04-graph", "double 25: let loss", TWICE),
    (
        "04-graph",
        "double 26: losses.push",
        "A number more in a list is no memory that the check counts, and the mean is the same.",
    ),
    ("06-scaler", "double 25: clip_grad_norm_", "What is short enough already is not clipped again."),
    ("07-same", "double 29: let loss", "Nothing random happens in the pass, so it changes no bit."),
    ("08-stream", "double 18: let x", "A chunk that is copied twice is a waste; the task is the order."),
    ("08-stream", "double 19: compute.wait_stream", AGAIN),
    ("08-stream", "double 27: let mut y", TWICE),
    ("08-clock", "double 11: step", "Two steps of warm-up are as good as one."),
    ("08-clock", "11: `?;` is `?.detach();`: step", "Nobody looks at what a step returns."),
    ("08-clock", "double 12: wait_for", AGAIN),
    ("08-clock", "double 13: let start", "The second reading of the clock is the one that counts."),
    ("08-clock", "15: `?;` is `?.detach();`: step", "Nobody looks at what a step returns."),
    ("08-clock", "double 17: wait_for", AGAIN),
    ("09-pinned", "double 21: copied.synchronize", AGAIN),
    (
        "09-pinned",
        "double 23: let x",
        "A frame that is copied twice is a waste; the task is that the buffer is not refilled too soon.",
    ),
    ("09-pinned", "double 24: copied.record", "An event is what it was recorded as last."),
    ("09-prefetch", "double 22: compute.wait_stream", AGAIN),
    ("02-batch", "move 19 behind `optimizer.step()?;`: optimizer.zero_grad", CLEARED),
    ("03-loop", "move 22 behind `optimizer.step()?;`: optimizer.zero_grad", CLEARED),
    ("03-item", "move 19 behind `optimizer.step()?;`: optimizer.zero_grad", CLEARED),
    ("03-optimizer", "move 25 behind `optimizer.step()?;`: optimizer.zero_grad", CLEARED),
    ("04-graph", "move 18 behind `optimizer.step()?;`: optimizer.zero_grad", CLEARED),
    ("06-autocast", "move 18 behind `optimizer.step()?;`: optimizer.zero_grad", CLEARED),
    ("11-map", "swap 10: net.load_state_dict", ANY_ORDER),
    ("11-map", "move 11 before `let state = StateDict::try_from(&loaded)?;`: net.to", ANY_ORDER),
    ("11-optimizer", "swap 15: net.load_state_dict", ANY_ORDER),
    (
        "11-optimizer",
        "move 15 behind `optimizer.load_state_dict(checkpoint.at(\"optimizer\")?.as_dict()?)?;`: net.load_state_dict",
        ANY_ORDER,
    ),
    ("11-optimizer", "move 16 before `let mut optimizer", ANY_ORDER),
    ("11-optimizer", "double 17: optimizer.load_state_dict", TWICE),
    ("11-optimizer", "double 23: let loss", TWICE),
    ("11-optimizer", "move 24 behind `optimizer.step()?;`: optimizer.zero_grad", CLEARED),
    ("11-strict", "double 14: net.load_state_dict", TWICE),
    ("07-same", "34: `.detach()` is ``", "A parameter holds on to no graph."),
];

/// Reasons that come often.
const TWICE: &str =
    "What is computed twice is a waste of time, and the same result; the task is something else.";
const CLEARED: &str = "Gradients that are cleared after the step are clear before the next backward pass.";
const ANY_ORDER: &str = "A network may move before or after it is given its numbers.";
const AGAIN: &str = "Who has waited waits no longer.";

/// A solution with one change.
struct Mutant {
    what: String,
    text: String,
}

/// All changes of a solution.
fn mutants(exercise: &Exercise) -> Vec<Mutant> {
    let solution = exercise.solution();
    let lines: Vec<&str> = solution.lines().collect();
    let mut all = Vec::new();
    let mut add = |what: String, lines: Vec<String>| all.push(Mutant { what, text: lines.join("\n") + "\n" });
    let with = |at: usize, new: Vec<String>| {
        let mut changed: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
        changed.splice(at..=at, new);
        changed
    };
    let is_statement =
        |line: &str| line.starts_with("    ") && line.ends_with(';') && !line.trim().starts_with("//");
    for (at, line) in lines.iter().enumerate() {
        let shown = line.trim();
        if is_statement(line) {
            add(format!("drop {}: {shown}", at + 1), with(at, vec![]));
            add(format!("double {}: {shown}", at + 1), with(at, vec![line.to_string(), line.to_string()]));
            let next = lines.get(at + 1).filter(|next| is_statement(next));
            if let Some(next) = next {
                let mut swapped = with(at, vec![next.to_string(), line.to_string()]);
                swapped.remove(at + 2);
                add(format!("swap {}: {shown}", at + 1), swapped);
                let mut dropped = with(at, vec![]);
                dropped.remove(at);
                add(format!("drop two {}: {shown}", at + 1), dropped);
            }
            // Out of a loop or into one, most often.
            if let Some(after) = lines.get(at + 2).filter(|_| at + 2 < lines.len()) {
                let mut moved = with(at, vec![]);
                moved.insert(at + 2, line.to_string());
                add(format!("move {} behind `{}`: {shown}", at + 1, after.trim()), moved);
            }
            if at >= 2 {
                let mut moved = with(at, vec![]);
                moved.insert(at - 2, line.to_string());
                add(format!("move {} before `{}`: {shown}", at + 1, lines[at - 2].trim()), moved);
            }
        }
        if line.trim().starts_with("//") || !line.starts_with("    ") {
            continue;
        }
        for (from, to) in [
            ("(device)", "(Device::Cpu)"),
            ("true", "false"),
            ("false", "true"),
            ("&x", "&y"),
            ("?;", "?.detach();"),
            (".to(device)?", ".clone()"),
            ("len()", "len() - 1"),
            ("0..", "1.."),
            (" + ", " - "),
            (" / ", " * "),
            ("1.0", "2.0"),
            ("0.0", "1.0"),
            ("1e-3", "1e-2"),
            ("0.1", "0.2"),
            ("&y", "&x"),
            ("sum", "mean"),
            ("mean", "sum"),
            (".detach()", ""),
            ("zero_grad()", "step()"),
            ("copies", "compute"),
            ("compute", "copies"),
            ("backward()", "copy()"),
            ("model", "&model"),
            ("len()", "len() + 1"),
            ("eval()", "train()"),
            ("train()", "eval()"),
            ("no_grad", "enable_grad"),
            ("(true)", "(false)"),
            ("F16", "F32"),
            ("BF16", "F16"),
            ("parameters()", "children()"),
            ("if ", "if !"),
            (".cpu()?", ""),
            ("seed", "seed + 1"),
            (" >= ", " > "),
            (" <= ", " < "),
            (" == ", " != "),
            (" != ", " == "),
            (" && ", " || "),
            (" += ", " -= "),
            (" += ", " = "),
            ("continue", "break"),
            ("2 <<", "1 <<"),
            ("_device(index)", "()"),
            ("allocated_size", "requested_size"),
            ("total_size", "allocated_size"),
            ("Inactive", "ActiveAllocated"),
        ] {
            if line.contains(from) {
                let changed = line.replacen(from, to, 1);
                add(format!("{}: `{from}` is `{to}`: {shown}", at + 1), with(at, vec![changed]));
            }
        }
    }
    all.retain(|mutant| mutant.text != solution && rules::check(exercise.id, &mutant.text, false).is_ok());
    all
}

/// What came of some: how many did not compile, were rejected, and did what the solution does; and what passed otherwise.
#[derive(Debug, Default)]
struct Counts {
    broken: usize,
    rejected: usize,
    same: usize,
    right_too: usize,
    passed: Vec<String>,
}

fn try_all(exercise: &Exercise, mutants: &[Mutant], counts: &mut Counts, name: &str) {
    let folder = folder(&format!("{} {name}", exercise.id));
    let mut files: Vec<(String, PathBuf, &Mutant)> = Vec::new();
    for (number, mutant) in mutants.iter().enumerate() {
        let file = folder.join(format!("m{number}.rs"));
        fs::write(&file, &mutant.text).unwrap();
        files.push((format!("m{number}"), file, mutant));
    }
    let program = folder.join("program");
    // One that does not compile is left out; then more may be found.
    loop {
        let named: Vec<(&str, &Path)> =
            files.iter().map(|(name, file, _)| (name.as_str(), file.as_path())).collect();
        match compile(library(), exercise, &named, &program).unwrap() {
            Compiled::Well => break,
            Compiled::GaveUp(why) => panic!("{}: the compiler {why}", exercise.id),
            Compiled::Wrong(errors) => {
                let before = files.len();
                files.retain(|(name, file, _)| {
                    let is_it = |told: &str| Path::new(told) == file;
                    // The check cannot call it: that is told of the file that does.
                    !errors
                        .iter()
                        .any(|error| is_it(error.file()) || error.rendered().contains(&format!("{name}::")))
                });
                counts.broken += before - files.len();
                assert!(files.len() < before, "{}: {}", exercise.id, errors[0].rendered());
            }
        }
    }
    let cases = exercise.cases(&HELD_OUT);
    let right = exercise.right(&cases);
    for (name, _, mutant) in &files {
        let checked = run(&program, exercise, name, &cases, &right, &folder).unwrap();
        let passed = matches!(checked.verdict, Verdict::Passed { .. });
        let listed =
            RIGHT_TOO.iter().any(|(id, what, _)| *id == exercise.id && mutant.what.starts_with(what));
        match passed {
            false => counts.rejected += 1,
            true if checked.seen.iter().zip(&right).all(|(seen, right)| does_the_same(seen, right)) => {
                counts.same += 1;
            }
            true if listed => counts.right_too += 1,
            true => counts.passed.push(format!("{}: {}", exercise.id, mutant.what)),
        }
    }
}

/// The same results by the same calls, on whatever lines and in whatever order.
fn does_the_same(seen: &Seen, right: &Seen) -> bool {
    let done = |seen: &Seen| {
        let mut calls: Vec<String> = seen
            .calls
            .iter()
            .map(|call| format!("{:?} {} {} {}", call.kind, call.name, call.bytes, call.stream))
            .collect();
        calls.sort();
        // As text: a result may be no number, and that is never equal.
        format!("{:?} {:?} {:?} {calls:?}", seen.ended, seen.facts, seen.races)
    };
    done(seen) == done(right)
}

/// Some of a list, spread over all of it.
fn sample(mut all: Vec<Mutant>, count: usize) -> Vec<Mutant> {
    let step = all.len() as f64 / count as f64;
    let places: Vec<usize> = (0..count).map(|k| (k as f64 * step) as usize).collect();
    let mut at = 0;
    all.retain(|_| {
        at += 1;
        places.contains(&(at - 1))
    });
    all
}

#[test]
fn a_sample_of_sixty_is_rejected_or_right() {
    let mut counts = Counts::default();
    // Each program has to be linked, so there are few of them.
    for exercise in EXERCISES.iter().step_by(3) {
        try_all(exercise, &sample(mutants(exercise), 9), &mut counts, "sample");
    }
    assert!(counts.broken + counts.rejected + counts.same + counts.right_too >= 60, "{counts:#?}");
    assert!(counts.passed.is_empty(), "{counts:#?}");
    assert!(counts.rejected > counts.same + counts.right_too, "{counts:#?}");
}

/// `cargo test -p exercises -- --ignored --nocapture a_thousand`
#[test]
#[ignore = "takes minutes"]
fn a_thousand_are_rejected_or_right() {
    let mut counts = Counts::default();
    for exercise in EXERCISES {
        try_all(exercise, &mutants(exercise), &mut counts, "all");
    }
    println!("{counts:#?}");
    assert!(counts.passed.is_empty());
}
