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
}
