//! The student's files: nothing is lost, whatever else happens on the computer.

use std::fs;
use std::process::{Command, Stdio};

use crate::program::{Done, Folder, done};

/// Runs commands at the same time.
fn at_once(folder: &Folder, commands: &[&[&str]]) {
    let start = |words: &&[&str]| folder.command(words).stdout(Stdio::null()).spawn().unwrap();
    let started: Vec<_> = commands.iter().map(start).collect();
    for mut child in started {
        assert!(child.wait().unwrap().success());
    }
}

/// Runs a command where no file may grow: the write fails, as it does on a full disk.
fn on_a_full_disk(folder: &Folder, words: &[&str]) -> Done {
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_course"), "--work"]).arg(&folder.0).args(words);
    done(shell.env("NO_COLOR", "1"))
}

#[test]
fn several_at_once_lose_no_progress() {
    let folder = Folder::new("the busy");
    let ids = ["01-portable", "02-batch", "02-mask", "03-loop", "03-item", "04-no-grad"];
    for number in ["1", "2", "3"] {
        let hints: Vec<[&str; 3]> = ids.iter().map(|id| ["hint", *id, number]).collect();
        at_once(&folder, &hints.iter().map(|hint| &hint[..]).collect::<Vec<_>>());
        let kept: serde_json::Value = serde_json::from_str(&folder.read("progress.json")).unwrap();
        for id in ids {
            assert_eq!(kept["exercises"][id]["hints"].to_string(), number, "{id}: {kept}");
        }
    }
    assert_eq!(folder.names(), ["progress.json"]);
}

#[test]
fn several_at_once_begin_a_file_once_and_keep_all_that_is_reset() {
    let folder = Folder::new("the hasty");
    let show: &[&str] = &["show", "02-batch"];
    at_once(&folder, &[show; 4]);
    folder.write("02-batch.rs", "// mine\n");
    let reset: &[&str] = &["reset", "02-batch"];
    at_once(&folder, &[reset; 4]);
    let kept = (1..=4).map(|number| folder.read(&format!("02-batch.rs.yours-{number}")));
    assert!(kept.into_iter().any(|kept| kept == "// mine\n"));
    assert!(folder.read("02-batch.rs").contains("pub fn train"));
    assert_eq!(folder.names().len(), 5);
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_what_there_was() {
    let folder = Folder::new("the full");
    for words in [&["show", "02-batch"][..], &["check", "02-batch"], &["reset", "02-batch"]] {
        let done = on_a_full_disk(&folder, words);
        assert!(
            done.code == 1 && done.err.starts_with("error: ") && done.err.lines().count() == 1,
            "{done:?}"
        );
        assert!(done.err.contains("02-batch.rs: ") && done.err.contains("--work DIR"), "{done:?}");
        assert_eq!(folder.names(), [""; 0], "{words:?}");
    }
    folder.write("02-batch.rs", "// mine\n");
    let done = on_a_full_disk(&folder, &["reset", "02-batch"]);
    assert!(done.code == 1 && done.err.contains("your work is unchanged, in that file"), "{done:?}");
    assert_eq!((folder.read("02-batch.rs").as_str(), folder.names().len()), ("// mine\n", 1));
    // What is said of an exercise does not depend on its file.
    let done = on_a_full_disk(&folder, &["solution", "02-batch"]);
    assert!(done.code == 0 && done.err.is_empty(), "{done:?}");
}

#[cfg(unix)]
#[test]
fn a_device_without_an_end_is_not_read() {
    let folder = Folder::new("the endless");
    let zero = |name: &str| std::os::unix::fs::symlink("/dev/zero", folder.0.join(name)).unwrap();
    zero("02-batch.rs");
    let done = folder.run(&["check", "02-batch"]);
    assert!(done.code == 1 && done.out.contains("not a regular file"), "{done:?}");
    let mut quiz = folder.command(&["quiz", "2"]);
    let done = crate::program::done(quiz.stdin(fs::File::open("/dev/zero").unwrap()));
    assert!(done.code == 0 && done.out.contains("\n0 of 0 right\n"), "{done:?}");
    fs::remove_file(folder.0.join("progress.json")).ok();
    zero("progress.json");
    let done = folder.run(&["list"]);
    assert!(done.code == 2 && done.err.ends_with("progress.json: not a regular file\n"), "{done:?}");
}

#[test]
fn a_file_in_another_encoding_is_named() {
    let folder = Folder::new("the encoded");
    let solution = folder.run(&["solution", "02-batch"]).out;
    let utf_16: Vec<u8> = format!("\u{feff}{solution}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(folder.0.join("02-batch.rs"), utf_16).unwrap();
    let done = folder.run(&["check", "02-batch"]);
    assert!(done.code == 1 && done.err.is_empty() && done.out.contains("it is saved as UTF-16"), "{done:?}");
    fs::write(folder.0.join("02-batch.rs"), b"// caf\xe9\n").unwrap();
    let done = folder.run(&["check", "02-batch"]);
    assert!(done.code == 1 && done.out.contains("not saved as UTF-8: line 1 has other bytes"), "{done:?}");
    let teacher = Folder::new("their teacher");
    let graded = teacher.run(&["grade", &folder.0.display().to_string(), "--format", "csv"]).out;
    assert!(graded.contains("false,it is not saved as UTF-8: line 1 has other bytes"), "{graded}");
}

#[test]
fn the_file_that_is_named_is_there() {
    let folder = Folder::new("the named");
    let done = folder.run(&[]);
    let file = done.out.lines().find(|line| line.ends_with(".rs")).unwrap().trim();
    assert!(fs::read_to_string(file).unwrap().contains("use todevice::prelude::*;"), "{}", done.out);
}
