//! `course ending`: the end of the course.

use std::fs;

use crate::program::Folder;

#[test]
fn the_ending_has_the_score_the_twelve_moments_with_their_bets_and_three_ways_to_go_on() {
    let folder = Folder::new("ending");
    folder.write(
        "progress.json",
        r#"{ "to-device-progress": 1,
            "predictions": {
                "01-faster": { "said": "b", "verdict": "wrong" },
                "03-zero": { "said": "1", "verdict": "right" }
            } }"#,
    );
    let page = folder.0.join("the-end.html");
    let done = folder.run(&["ending", "--page", page.to_str().unwrap()]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for part in [
        "You made 2 of ",
        "Bets that you lost",
        "What to read next",
        " 1. Two kinds of .to (chapter 01)\n",
        " 2. The crossover (chapter 01): bet lost\n",
        " 4. Is it learning? (chapter 03): bet won\n",
        "12. Move, then load (chapter 11)\n",
        "What you know now",
        "Three ways to go on",
        "tensor/src/lib.rs",
        "kernels/norm.cu",
        "cargo run --bin verify -- --gpu real --report report.txt",
    ] {
        assert!(done.out.contains(part), "{part}\n{}", done.out);
    }
    let (_, moments) = done.out.split_once("The twelve moments").unwrap();
    let (moments, _) = moments.split_once("The page to print is in").unwrap();
    assert!(moments.lines().all(|line| line.chars().count() <= 80), "{moments}");

    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<g data-bet=").count(), 12);
    assert!(html.contains(">bet lost</text>") && html.contains("Bets that you lost"), "{html}");
    // A page with headings and lists, and not a terminal's text.
    for part in
        ["<h2>What to read next</h2>", "<h2>What you know now</h2>", "<li><b>not yet</b> ", "<figure><svg"]
    {
        assert!(html.contains(part), "{part}\n{html}");
    }
    assert!(!html.contains("<pre"), "{html}");
    // It needs no other file, and nothing of the record becomes markup.
    assert!(!html.contains("<script") && !html.contains("src="), "{html}");
}

#[test]
fn a_page_that_cannot_be_written_is_one_line() {
    let folder = Folder::new("no ending");
    let done = folder.run(&["ending", "--page", "no/such/folder/page.html"]);
    assert_eq!(done.code, 1);
    assert!(done.err.contains("--page no/such/folder/page.html: "), "{}", done.err);
    assert_eq!(done.err.trim().lines().count(), 1, "{}", done.err);
    assert_eq!(done.out, "");
}

#[test]
fn a_folder_that_is_not_there_is_one_line_and_stays_away() {
    let folder = Folder::new("no folder");
    fs::remove_dir_all(&folder.0).unwrap();
    for command in ["score", "ending", "report", "list"] {
        let done = folder.run(&[command]);
        assert!(done.code == 2 && done.err.contains("there is no such folder"), "{command}: {done:?}");
        assert!(done.err.trim().lines().count() == 1 && done.out.is_empty(), "{command}: {done:?}");
        assert!(!folder.0.exists(), "{command}");
    }
}

#[test]
fn the_final_assessment_has_its_points_wherever_the_course_is_counted() {
    let folder = Folder::new("counted");
    let said = "You have not checked the final assessment.";
    let done = folder.run(&["score"]);
    assert!(done.out.contains(said), "{}", done.out);
    assert!(folder.run(&["list"]).out.contains("The final assessment, up to 100 points"));
    // As the page keeps it.
    folder.write(
        "progress.json",
        r#"{ "to-device-progress": 1, "final": { "begun": { "seed": 7, "choice": [0] }, "seed": 7, "points": 66, "passed": true, "objectives": [
            { "chapter": "03", "objective": "Write a training loop.", "met": true, "read again": [] },
            { "chapter": "04", "objective": "Say when a tensor dies.", "met": false, "read again": ["04-memory, When does it die?"] }] } }"#,
    );
    let said =
        "The final assessment: passed, 66 of 100 points, 1 of 2 objectives met (the\nprogram of seed 7).";
    for command in ["score", "ending"] {
        let done = folder.run(&[command]);
        assert!(done.out.contains(said), "{command}: {}", done.out);
    }
    let list = folder.run(&["list", "--done"]).out;
    assert!(list.contains("The final assessment, 66 of 100 points"), "{list}");
    let report = folder.run(&["report"]).out;
    assert!(
        report.contains("passed, 66 of 100 points")
            && report.contains("read again: 04-memory, When does it die?"),
        "{report}"
    );
    folder.write("progress.json", r#"{ "to-device-progress": 1, "final": { "points": "all" } }"#);
    let done = folder.run(&["report"]);
    assert!(done.code == 2 && done.err.contains("`final` is not the result"), "{done:?}");
}

#[test]
fn who_has_answered_nothing_knows_nothing_yet() {
    let done = Folder::new("fresh").run(&["ending"]);
    assert!(
        done.out.contains("What you will know") && !done.out.contains("What you know now"),
        "{}",
        done.out
    );
}
