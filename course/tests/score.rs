//! `course score`: how a student did in the whole course.

use crate::program::Folder;

#[test]
fn who_has_done_nothing_is_told_where_to_begin() {
    let done = Folder::new("no score").run(&["score"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.starts_with("You have not answered anything yet.\n"), "{}", done.out);
    assert!(
        done.out.contains("- Begin with 01 Devices.\n") && !done.out.contains("Bets that you lost"),
        "{}",
        done.out
    );
    assert!(done.out.contains("https://docs.pytorch.org/docs/stable/notes/cuda.html"), "{}", done.out);
}

#[test]
fn a_score_has_the_objectives_the_lost_bets_with_what_is_true_and_what_to_read_next() {
    let folder = Folder::new("score");
    folder.write(
        "progress.json",
        r#"{ "to-device-progress": 1,
            "predictions": {
                "01-faster": { "said": "b", "verdict": "wrong" },
                "01-six-calls": { "said": "4", "verdict": "right" },
                "02-sum": { "verdict": "skipped" },
                "02-gone": { "said": "\u001b[2J", "verdict": "wrong" }
            },
            "questions": { "01-slow-network": { "said": "1", "right": true } },
            "exercises": { "01-portable": { "passed": true, "checks": 1 } } }"#,
    );
    let done = folder.run(&["score"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.contains("You made 2 of "), "{}", done.out);
    // What the old answer says is not repeated.
    assert!(!done.out.contains('\u{1b}'), "{}", done.out);
    let words: String = done.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "One answer belongs to a version of the course that is not this one",
        "01 Devices shown Say which kind of work a GPU does faster",
        "02 The golden rule not yet State the golden rule",
        "Bets that you lost 01-faster: A square matrix is multiplied by itself",
        "You said “From 32 or 64 on”. No. What decides is where the arithmetic outweighs the launch and the wait. The answer is “From 128 or 256 on”.",
        "What to read next - You have not begun 02 The golden rule; 03 The training loop;",
        "Look again: - Chapter 01: Use the words host",
    ] {
        assert!(words.contains(part), "{part}\n{}", done.out);
    }
}
