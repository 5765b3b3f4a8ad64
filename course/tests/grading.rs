//! `course grade` and `course report`.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::program::Folder;

#[test]
fn a_folder_is_graded_with_seeds_that_can_be_repeated() {
    let (folder, teacher) = (Folder::new("a class"), Folder::new("a teacher"));
    folder.write("02-batch.rs", &folder.run(&["solution", "02-batch"]).out);
    // Neither what else is there nor what was kept decides.
    folder.write(
        "progress.json",
        r#"{ "to-device-progress": 1, "exercises": { "02-batch": { "passed": true } } }"#,
    );
    folder.write("Cargo.toml", "nonsense");
    let graded = |format: &str| {
        let path = folder.0.display().to_string();
        let done = teacher.run(&["grade", &path, "--seed", "7", "--format", format]);
        assert_eq!((done.code, done.err.lines().next()), (0, Some("graded with --seed 7")), "{}", done.out);
        assert_eq!(done.err.contains("no Landlock"), !exercises::can_confine(), "{}", done.err);
        done.out
    };
    assert!(graded("csv").contains("02-batch,The batch that stayed behind,true,passed\n"));
    folder.write("02-batch.rs", &folder.run(&["solution", "02-batch"]).out.replace("y.to(device)?", "y"));
    let csv = graded("csv");
    assert!(
        csv.contains(",false,\"targets-left: The inputs are on the GPU, but the targets are not.\"\n"),
        "{csv}"
    );
    let json: serde_json::Value = serde_json::from_str(&graded("result")).unwrap();
    let tests = json["tests"].as_array().unwrap();
    assert!(
        json["score"] == 0 && tests.iter().all(|test| test["max_score"] == 1.0 && test["status"] == "failed")
    );
    let junit = graded("junit");
    assert!(junit.starts_with("<?xml") && junit.contains("<failure message=\"targets-left: "), "{junit}");
    assert_eq!(junit.matches("<testcase ").count(), tests.len());
    assert!(!junit.contains("disabled"), "junit-10.xsd knows no such attribute");
}

#[test]
fn a_file_that_kills_the_compiler_spoils_no_other_grade_and_leaves_nothing_behind() {
    let (folder, teacher) = (Folder::new("a class with a bomb"), Folder::new("a teacher with a bomb"));
    let nested = format!("pub fn train() {{ {}true; }}", "!".repeat(200_000));
    folder.write("02-batch.rs", &nested);
    folder.write("02-mask.rs", &folder.run(&["solution", "02-mask"]).out);
    fs::write(folder.0.join("03-item.rs"), b"fn \xff() {}").unwrap();
    let path = folder.0.display().to_string();
    let mut command = teacher.command(&["grade", &path, "--format", "csv"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let own = format!("own-{}-", child.id());
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert!(out.contains(",false,compiler: The compiler could not build this file: it "), "{out}");
    assert!(out.contains(",false,it is not saved as UTF-8: line 1 has other bytes\n"), "{out}");
    assert!(out.lines().any(|line| line.starts_with("02-mask,") && line.ends_with(",true,passed")), "{out}");
    let scratch = Path::new(env!("CARGO_BIN_EXE_course")).ancestors().nth(2).unwrap().join("course");
    let left =
        fs::read_dir(scratch).unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    assert_eq!(left.filter(|name| name.starts_with(&own)).count(), 0);
}

#[test]
fn a_report_says_what_was_kept() {
    let folder = Folder::new("reports");
    folder.write(
        "progress.json",
        r#"{ "to-device-progress": 1, "exercises": { "02-batch": { "passed": true, "checks": 3 } } }"#,
    );
    assert!(folder.run(&["report"]).out.contains("passed, 3 checks"));
    let json: serde_json::Value =
        serde_json::from_str(&folder.run(&["report", "--format", "json"]).out).unwrap();
    assert_eq!(json["passed"], 1);
    assert!(folder.run(&["report", "--format", "junit"]).out.contains("<testcase name=\"02-batch\""));
}
