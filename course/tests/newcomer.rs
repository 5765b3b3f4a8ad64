//! A newcomer's first ten minutes.

use std::fmt::Write;

use crate::program::Folder;

#[test]
fn the_first_ten_minutes() {
    let folder = Folder::new("a newcomer");
    let mut told = String::new();
    let mut run = |words: &[&str], code: i32| {
        let done = folder.run(words);
        assert_eq!((done.code, done.err.as_str()), (code, ""), "{words:?}: {}", done.out);
        let prompt = ["course"].iter().chain(words).copied().collect::<Vec<_>>().join(" ");
        let _ = writeln!(told, "$ {prompt}\n{}", folder.plain(&done.out));
    };
    run(&[], 0);
    run(&["show", "02-batch"], 0);
    run(&["check", "02-batch"], 1);
    run(&["hint", "02-batch"], 0);
    let begun = folder.read("02-batch.rs");
    folder.write(
        "02-batch.rs",
        &begun.replace("x, y) in batches {\n", "x, y) in batches {\n        let x = x.to(device)?;\n"),
    );
    run(&["check", "02-batch"], 1);
    folder.write(
        "02-batch.rs",
        &begun.replace(
            "x, y) in batches {\n",
            "x, y) in batches {\n        let (x, y) = (x.to(device)?, y.to(device)?);\n",
        ),
    );
    run(&["check", "02-batch"], 0);
    run(&["list", "batch"], 0);
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("newcomer", told);
    });
}

#[test]
fn what_was_done_is_kept_and_a_file_of_ones_own_too() {
    let folder = Folder::new("a student");
    assert_eq!(folder.run(&["hint", "02-batch", "2"]).code, 0);
    assert_eq!(folder.run(&["show", "02-batch"]).code, 0);
    folder.write("02-batch.rs", "// mine\n");
    let done = folder.run(&["reset", "02-batch"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(folder.read("02-batch.rs.yours-1"), "// mine\n");
    assert!(folder.read("02-batch.rs").contains("pub fn train"));
    let solution = folder.run(&["solution", "02-batch"]).out;
    folder.write("02-batch.rs", &solution);
    assert_eq!(folder.run(&["check", "02-batch"]).code, 0);
    assert!(folder.read("progress.json").contains("\"hints\": 2"));
    // Renamed, it is begun anew, and what was passed stays passed.
    std::fs::rename(folder.0.join("02-batch.rs"), folder.0.join("old.rs")).unwrap();
    let done = folder.run(&["check", "02-batch"]);
    assert!(done.code == 1 && done.out.contains("as it is to begin with"), "{}", done.out);
    assert!(folder.run(&["list", "--done"]).out.contains("02-batch"));
}

#[test]
fn the_questions_of_a_chapter_are_asked_and_answered() {
    let folder = Folder::new("quizzes");
    let done = folder.tell(&["quiz", "2"], "x\na\n\nb\n");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.contains("`x` is none of them."), "{}", done.out);
    assert!(done.out.contains(" of 2 right\n"), "{}", done.out);
    assert_eq!(folder.read("progress.json").matches("\"right\"").count(), 2);
}
