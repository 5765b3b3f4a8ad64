//! `course grade` and `course report`.

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
        assert_eq!((done.code, done.err.as_str()), (0, "graded with --seed 7\n"), "{}", done.out);
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
