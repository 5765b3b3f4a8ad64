//! A teacher's own exercise: one file in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::Folder;

/// The folder of the example that the guide shows.
fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../labs/exercises/example")
}

fn example_text() -> String {
    fs::read_to_string(example().join("02-column-means.rs")).unwrap()
}

#[test]
fn a_teachers_exercise_is_done_and_graded_like_those_of_the_course() {
    let folder = Folder::new("a student of a teacher's own");
    let own = example().display().to_string();
    let course = |words: &[&str]| folder.run(&[&["--exercises", &own], words].concat());
    let done = course(&["show", "02-column-means"]);
    assert!(
        done.code == 0 && done.out.contains("02-column-means  The means of columns (fix it)"),
        "{done:?}"
    );
    assert!(folder.read("02-column-means.rs").contains("x.cpu()?.mean_dims"));
    let done = course(&["check", "02-column-means"]);
    assert!(
        done.code == 1 && done.out.contains("not yet: More than the means is copied to the CPU."),
        "{done:?}"
    );
    assert!(done.out.contains("02-column-means.rs:5"), "the line of the student's file: {done:?}");
    assert!(course(&["hint", "column-means"]).out.contains("An operation runs where its tensors are."));
    let solution = course(&["solution", "column-means"]).out;
    folder.write("02-column-means.rs", &solution);
    let done = course(&["check", "02-column-means"]);
    assert!(done.code == 0 && done.out.contains("passed: right in all 12 runs"), "{done:?}");
    assert!(course(&["list", "--done"]).out.contains("02-column-means"));

    // Beside an exercise of the course, in a class.
    let class = Folder::new("a class of a teacher's own");
    fs::create_dir(class.0.join("Anna")).unwrap();
    class.write("Anna/02-column-means.rs", &solution);
    class.write("Anna/02-batch.rs", "unsafe fn f() {}\n");
    class.write("Ben_1_02-column-means (1).rs", &solution.replace("&[0]", "&[1]"));
    class.write("Cem_2_02-column-means.rs", &solution.replace("means.cpu()", "todo!()"));
    let path = class.0.display().to_string();
    let words = ["grade", &path, "--format", "csv", "--exercises"];
    let csv = folder.run(&[&words[..], &[&format!("{own},02")]].concat()).out;
    for row in [
        "Anna,02-batch,The batch that stayed behind,false,refused,",
        "Anna,02-column-means,The means of columns,true,,passed",
    ] {
        assert!(csv.contains(row), "{row}\n{csv}");
    }
    assert!(csv.contains("Ben,02-column-means,The means of columns,false,means,"), "{csv}");
    assert!(csv.contains("Cem,02-column-means,The means of columns,false,todo,"), "{csv}");
    // Without the folder nobody knows the exercise.
    assert!(folder.run(&["check", "02-column-means"]).err.contains("there is no exercise `02-column-means`"));
}

#[test]
fn the_example_has_no_defects_and_each_defect_is_one_line() {
    let folder = Folder::new("defects");
    let done = folder.run(&["examine", &example().display().to_string()]);
    assert!(done.code == 0 && done.out.contains("no defects"), "{done:?}");

    let text = example_text();
    let task = text.split("    task: ").nth(1).unwrap().split(",\n    hints").next().unwrap().to_owned();
    let defects = [
        (task.as_str(), "\"\"", "`task` is missing: describe the task"),
        ("\"Look at the order of the two calls.\"", "\"\"", "hint 2 is missing"),
        ("id: \"02-column-means\"", "id: \"02-batch\"", "the course already has an exercise `02-batch`"),
        // A check that does not look at the copies.
        ("bytes > 2 * expected", "bytes > 1 << 40", "copied_first is wrong, but passes"),
        (
            "diagnosis: \"left-there\"",
            "diagnosis: \"left-behind\"",
            "left_there gets the diagnosis `left-there`, not `left-behind`",
        ),
        // One that is too strict.
        ("bytes > 2 * expected", "bytes >= expected", "solution is right, but is rejected: copied-first"),
        (
            "&[(\"&[0]\", \"&[1]\")]",
            "&[(\"&[2]\", \"&[1]\")]",
            "of_rows: 02-column-means: `&[2]` stands in the solution 0 times",
        ),
        ("\"sim:h200\"]", "\"sim:t5\"]", "`gpus` has the unknown machine `sim:t5`"),
        (
            "&[(\"means.cpu()\", \"Ok(means)\")]",
            "&[(\"means.cpu()\", \"means.cqu()\")]",
            "left_there does not compile: no method named `cqu`",
        ),
        ("column_means: ColumnMeans) -> Seen {", "column_means: ColumnMeans) -> Sen {", "does not compile"),
        ("    // END\n", "", "no solution between the lines `// BEGIN` and `// END`"),
    ];
    for (number, (from, to, says)) in defects.iter().enumerate() {
        assert!(text.contains(from), "{from}");
        let file = format!("with-defect-{number}.rs");
        folder.write(&file, &text.replacen(from, to, 1).replace("02-column-means.rs", &file));
        let done = folder.run(&["examine", &folder.0.join(&file).display().to_string()]);
        assert!(done.code == 1 && done.out.contains(says), "{says}\n{done:?}");
        assert!(!done.out.contains("panicked") && !done.err.contains("panicked"), "{done:?}");
    }
    let done = folder.run(&["examine", "no-such-file.rs"]);
    assert!(done.code == 2 && done.err.lines().count() == 1, "{done:?}");
    let done = folder.run(&["--exercises", "no-such-folder", "list"]);
    assert!(
        done.code == 2 && done.err.contains("--exercises no-such-folder: there is no such folder"),
        "{done:?}"
    );
}
