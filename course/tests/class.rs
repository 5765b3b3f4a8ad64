//! `course grade` for a class.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use exercises::Exercise;
use serde_json::Value as Json;

use crate::program::{Done, Folder};

/// Refused before anything is compiled: for tests that are about names.
const REFUSED: &str = "unsafe fn f() {}\n";

fn write(folder: &Folder, file: &str, text: &str) {
    let path = folder.0.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn grade(folder: &Folder, more: &[&str]) -> Done {
    let path = folder.0.display().to_string();
    let words = [&["grade", &path, "--seed", "7"], more].concat();
    Folder::new(&format!("a teacher of {}", folder.0.file_name().unwrap().to_string_lossy())).run(&words)
}

fn graded(folder: &Folder, more: &[&str]) -> Json {
    let done = grade(folder, &[&["--format", "json"], more].concat());
    assert_eq!(done.code, 0, "{done:?}");
    serde_json::from_str(&done.out).unwrap()
}

/// Whose files were graded: `Anna: 02-batch late, 03-item`.
fn whose(class: &Json) -> Vec<String> {
    let students = class["students"].as_array().unwrap_or_else(|| panic!("no class: {class}"));
    let of_one = |student: &Json| {
        let files = student["exercises"].as_array().unwrap().iter().filter(|file| file["handed in"] == true);
        let files = files.map(|file| {
            let late = if file["late"] == true { " late" } else { "" };
            format!("{}{late}", file["id"].as_str().unwrap())
        });
        format!("{}: {}", student["name"].as_str().unwrap(), files.collect::<Vec<_>>().join(", "))
    };
    students.iter().map(of_one).collect()
}

/// What a class looks like with these files.
fn class(name: &str, files: &[&str]) -> Json {
    let folder = Folder::new(name);
    for file in files {
        write(&folder, file, REFUSED);
    }
    graded(&folder, &[])
}

#[test]
fn names_that_platforms_and_browsers_make_are_understood() {
    for (file, expected) in [
        ("Anna Müller_12345_assignsubmission_file_04-accumulate.rs", "Anna Müller: 04-accumulate"),
        // The same in the letters of a Mac: u and two dots.
        ("Anna Mu\u{308}ller_12345_04-accumulate (1).rs", "Anna Müller: 04-accumulate"),
        ("muelleranna_LATE_12345_678901_04-accumulate-1.rs", "muelleranna: 04-accumulate late"),
        ("muelleranna_12345_678901_04-accumulate-2.rs", "muelleranna: 04-accumulate"),
        ("Week 4_amueller_attempt_2026-11-28-10-00-00_04-accumulate.rs", "amueller: 04-accumulate"),
        ("O'Brien_Seán_04_accumulate.RS", "O'Brien Seán: 04-accumulate"),
        ("jean-luc_4-accumulate.rs.txt", "jean-luc: 04-accumulate"),
        ("Zoë 04 Accumulate - Kopie (2).rs", "Zoë: 04-accumulate"),
        ("李雷_03-loop.rs (1).txt", "李雷: 03-loop"),
        ("de la Cruz, María_991_01-one-by-one_v2.rs", "de la Cruz, María: 01-one-by-one"),
        ("Group 7_03-item_final.rs", "Group 7: 03-item"),
        ("98765_03-item.rs", "98765: 03-item"),
        ("Ben_04-no_grad.rs", "Ben: 04-no-grad"),
        ("Ben_LATE_final (1).rs", "Ben: final late"),
    ] {
        assert_eq!(whose(&class("one name", &[file])), [expected], "{file}");
    }
}

#[test]
fn folders_are_students_however_they_are_packed() {
    for (files, expected) in [
        (&["Anna/02-batch.rs", "Ben/02-batch (1).rs"][..], &["Anna: 02-batch", "Ben: 02-batch"][..]),
        // Who has handed in nothing is shown, too.
        (
            &["Anna/02-batch.rs", "Ben/02-batch.rs", "Cem/homework.pdf"],
            &["Anna: 02-batch", "Ben: 02-batch", "Cem: "],
        ),
        // As an archive has it, with a folder around all.
        (
            &["class 7/Anna/exercises/02-batch.rs", "class 7/Ben/src/02-batch.rs"],
            &["Anna: 02-batch", "Ben: 02-batch"],
        ),
        (
            &[
                "Anna Müller_1_assignsubmission_file_/02-batch.rs",
                "Ben_2_assignsubmission_file_/Ben_02-batch.rs",
            ],
            &["Anna Müller: 02-batch", "Ben: 02-batch"],
        ),
        // Two files for one exercise, under two numbers: two students.
        (&["Anna_1_/02-batch.rs", "Anna_2_/02-batch.rs"], &["Anna (1): 02-batch", "Anna (2): 02-batch"]),
        (
            &["04-accumulate - Anna Müller.rs", "04-accumulate_mueller_12345.rs"],
            &["Anna Müller: 04-accumulate", "mueller: 04-accumulate"],
        ),
        // Files for two exercises, numbered anew for each: one.
        (&["Anna_1_02-batch.rs", "anna_2_02-mask.rs"], &["Anna: 02-batch, 02-mask"]),
        // A folder for each assignment.
        (
            &["Chapter 02/Anna_1_02-batch.rs", "Chapter 02/Ben_2_02-batch.rs", "02-mask/Anna_3_02-mask.rs"],
            &["Anna: 02-batch, 02-mask", "Ben: 02-batch"],
        ),
        (&["02-mask/Anna/02-mask.rs", "02-batch/Ben/02-batch.rs"], &["Anna: 02-mask", "Ben: 02-batch"]),
        // Nobody hands in files for others.
        (
            &["Eve/Anna_1_02-batch.rs", "Eve/Ben_2_02-batch.rs", "Anna/02-mask.rs", "Ben/02-mask.rs"],
            &["Anna: 02-mask", "Ben: 02-mask", "Eve: 02-batch"],
        ),
        // A whole checkout has the sources of the exercises, too, and what `reset` and a Mac keep.
        (
            &[
                "Anna/to-device/exercises/02-batch.rs",
                "Anna/to-device/labs/exercises/source/02-mask.rs",
                "Anna/02-mask.rs.yours-1",
                "__MACOSX/Anna/._02-batch.rs",
            ],
            &["Anna: 02-batch"],
        ),
    ] {
        assert_eq!(whose(&class("folders", files)), expected, "{files:?}");
    }
}

#[test]
fn the_last_of_several_attempts_is_graded_and_a_note_says_so() {
    let folder = Folder::new("attempts");
    let solution = Exercise::find("02-batch").unwrap().solution();
    let old = SystemTime::now() - Duration::from_secs(1000);
    for (file, text, is_old) in [
        // The higher number counts, although it is older.
        ("Anna_1_02-batch (2).rs", solution.as_str(), true),
        ("Anna_1_02-batch (1).rs", REFUSED, false),
        // The later time.
        ("HW_ben_attempt_2026-11-28-10-00-00_02-batch.rs", REFUSED, false),
        ("HW_ben_attempt_2026-11-28-11-00-00_02-batch.rs", &solution, true),
        // The newer file, where the names say nothing.
        ("Cem_3_02-batch.rs", REFUSED, true),
        ("Cem_3_02 batch.rs", &solution, false),
    ] {
        write(&folder, file, text);
        if is_old {
            fs::File::options().write(true).open(folder.0.join(file)).unwrap().set_modified(old).unwrap();
        }
    }
    write(&folder, "report.pdf", "");
    write(&folder, "02-batch.rs", &solution);
    let class = graded(&folder, &[]);
    let passed: Vec<&Json> =
        class["students"].as_array().unwrap().iter().map(|student| &student["passed"]).collect();
    assert_eq!(passed, [1, 1, 1], "{class:#}");
    // Two texts, each checked once.
    assert_eq!((&class["files"], &class["different"]), (&Json::from(3), &Json::from(1)));
    let notes = class["notes"].to_string();
    for note in [
        "Anna: 2 files for 02-batch; the last is graded: Anna_1_02-batch (2).rs",
        "02-batch.rs is not graded: its name contains no student",
        "report.pdf is not graded",
    ] {
        assert!(notes.contains(note), "{note}\n{notes}");
    }
}

#[test]
fn a_folder_with_nothing_is_one_line_and_exit_code_1() {
    let folder = Folder::new("nothing at all");
    let nothing = |says: &str, more: &[&str]| {
        let done = grade(&folder, more);
        assert!(done.code == 1 && done.out.is_empty() && done.err.lines().count() == 1, "{done:?}");
        assert!(done.err.contains(says), "{says}\n{done:?}");
    };
    nothing("has no exercises: expected files such as 02-batch.rs", &[]);
    write(&folder, "Anna/homework.pdf", "");
    nothing("homework.pdf is not graded", &[]);
    write(&folder, "Anna/02-batch.rs", REFUSED);
    nothing("has no file for these exercises; it has 02-batch", &["--exercises", "03"]);
    let done = grade(&folder, &["--exercises", "77"]);
    assert!(done.code == 2 && done.err.contains("there is no exercise `77`"), "{done:?}");
    let done = grade(&folder, &["--format", "result"]);
    assert!(done.code == 2 && done.err.contains("--output DIR"), "{done:?}");
}

#[test]
fn one_student_stays_one_student_whatever_a_platform_made_of_the_names() {
    let folder = Folder::new("one student");
    let solution = Exercise::find("02-batch").unwrap().solution();
    write(&folder, "02-batch (1).rs", &solution);
    write(&folder, "old/02-mask.rs.yours-1", REFUSED);
    write(&folder, "03-item_mine.rs", REFUSED);
    write(&folder, "03-accuracy_try.rs", REFUSED);
    let done = grade(&folder, &["--exercises", "02", "--format", "csv"]);
    assert!(done.out.contains("02-batch,The batch that stayed behind,true,passed\n"), "{done:?}");
    assert!(done.out.lines().count() > 2 && done.out.contains(",false,not there\n"), "{done:?}");
}

/// Thirty students with mistakes that are known, in files with names that platforms make.
fn planted(folder: &Folder, ids: &[&str]) -> Vec<(String, &'static str, Option<&'static str>)> {
    let mut expected = Vec::new();
    for number in 0..30 {
        let name = format!("Müller-{number:02} Zoë");
        for (at, id) in ids.iter().enumerate() {
            let exercise = Exercise::find(id).unwrap();
            let file = match (number + at) % 6 {
                0 => format!("{name}_{}_{id}.rs", 1000 + number),
                1 => format!("{name}_LATE_{}_{}_{id}-1.rs", 1000 + number, 77 * number),
                2 => format!("{name}_{}_assignsubmission_file_{} (1).rs", 1000 + number, id.to_uppercase()),
                3 => format!("{name}_{}_{}.rs.txt", 1000 + number, id.replace('-', "_")),
                4 => format!("Homework_{name}_attempt_2026-11-28-10-{number:02}-00_{id}.rs"),
                _ => format!("{} {id} - Kopie (2).rs", name.replace('ü', "u\u{308}")),
            };
            // Every third is right, and of the others each has a mistake.
            let place = number + 7 * at;
            let wrong = (place % 3 != 0).then(|| &exercise.wrong[place % exercise.wrong.len()]);
            let text =
                wrong.map_or_else(|| exercise.solution(), |wrong| exercise.edited(wrong.edits).unwrap());
            write(folder, &file, &text);
            expected.push((name.clone(), exercise.id, wrong.map(|wrong| wrong.diagnosis)));
        }
    }
    expected
}

/// How many of those that were planted are diagnosed so, in percent, and the class.
fn diagnosed(folder: &Folder, ids: &[&str], more: &[&str]) -> (f64, Json) {
    let expected = planted(folder, ids);
    let class = graded(folder, more);
    let students = class["students"].as_array().unwrap();
    assert_eq!(students.len(), 30);
    let right = expected.iter().filter(|(name, id, diagnosis)| {
        let student =
            students.iter().find(|student| student["name"] == *name).unwrap_or_else(|| panic!("{name}"));
        let row = student["exercises"].as_array().unwrap().iter().find(|row| row["id"] == *id).unwrap();
        row["diagnosis"].as_str() == *diagnosis && row["passed"] == diagnosis.is_none()
    });
    (100.0 * right.count() as f64 / expected.len() as f64, class)
}

#[test]
fn a_class_of_thirty_is_diagnosed_as_planted_and_shown_in_every_format() {
    let folder = Folder::new("a class of thirty");
    let output = Folder::new("the grades of thirty");
    let path = output.0.display().to_string();
    let (percent, class) = diagnosed(&folder, &["02-batch", "03-item"], &["--output", &path]);
    assert!(percent >= 95.0, "{percent} %");
    assert_eq!(class["seeds"].as_array().unwrap().len(), 3);
    // The most common mistake comes first, with those who made it.
    let counts: Vec<usize> = class["mistakes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["students"].as_array().unwrap().len())
        .collect();
    assert!(counts.len() > 5 && counts.is_sorted_by(|one, next| one >= next), "{counts:?}");

    let [html, text, csv, junit] =
        ["class.html", "class.txt", "class.csv", "class.xml"].map(|file| output.read(file));
    for name in ["Müller-00 Zoë", "Müller-29 Zoë"] {
        assert!([&html, &text, &csv, &junit].iter().all(|file| file.contains(name)), "{name}");
        let slug = name.replace(' ', "-");
        let result: Json = serde_json::from_str(&output.read(&format!("{slug}/result.json"))).unwrap();
        assert_eq!(result["tests"].as_array().unwrap().len(), 2);
    }
    assert_eq!(output.names().len(), 30 + 5);
    assert_eq!(csv.lines().count(), 1 + 60);
    assert_eq!((junit.matches("<testsuite ").count(), junit.matches("<testcase ").count()), (30, 60));
    assert!(!junit.contains("time=\"0\"") && !junit.contains("time=\"0.000\""), "{junit}");
    assert!(!html.contains("<script") && !html.contains("http"), "the page needs no network");
    assert!(html.contains("1000") || html.contains("--seed 7"));
}

/// A name is a text of somebody else's.
#[test]
fn a_name_is_neither_html_nor_a_formula_nor_a_path() {
    let folder = Folder::new("hostile names");
    let output = Folder::new("grades of hostile names");
    for file in ["=1+1_1_02-batch.rs", "<b onload=x>_2_02-batch.rs", ".._3_02-batch.rs", "CON_4_02-batch.rs"]
    {
        write(&folder, file, REFUSED);
    }
    let done = grade(&folder, &["--format", "csv", "--output", &output.0.display().to_string()]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains("\n'=1+1,") && !done.out.contains("\n=1"), "{}", done.out);
    let html = output.read("class.html");
    assert!(html.contains("&lt;b onload=x&gt;") && !html.contains("<b onload"), "{html}");
    assert!(!output.0.parent().unwrap().join("result.json").exists());
}

/// Fourteen exercises, all with mistakes: minutes of two cores.
#[test]
#[ignore = "it takes minutes: .ci/run has it"]
fn a_class_of_thirty_with_fourteen_files_each_takes_two_minutes_on_two_cores() {
    let ids = [
        "01-one-by-one",
        "02-batch",
        "02-mask",
        "03-loop",
        "03-item",
        "04-no-grad",
        "04-accumulate",
        "04-graph",
        "05-reading",
        "06-scaler",
        "07-shapes",
        "08-stream",
        "09-pinned",
        "11-map",
    ];
    let folder = Folder::new("420 files");
    let start = Instant::now();
    let (percent, class) = diagnosed(&folder, &ids, &[]);
    let seconds = start.elapsed().as_secs_f64();
    println!("420 files, {} different: {percent:.1} % as planted, {seconds:.0} s", class["different"]);
    assert!(percent >= 95.0, "{percent} %");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // A computer with other work to do takes longer: each check waits, and the compilers with it.
    assert!(seconds < 120.0 * (2.0 / cores.min(2) as f64) * 2.0, "{seconds} s");
    assert!(Path::new(&folder.0).exists());
}
