//! Tests of the subcommands `puzzle` and `case`, as a reader runs them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The exit code and the outputs of a call in a folder.
fn lab(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_lab-12")).args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn a_puzzle_is_begun_kept_and_solved() {
    let folder = folder("begun");
    let (code, list, _) = lab(&folder, &["puzzle"]);
    assert_eq!(code, 0);
    assert!(list.contains("  01  map\n") && list.contains("  14  matrix product with tiles\n"), "{list}");

    let (code, text, _) = lab(&folder, &["puzzle", "02"]);
    assert_eq!(code, 0);
    assert!(text.contains("// Puzzle 02: guard") && text.contains("puzzle 02 puzzle-02.cu"), "{text}");
    let mine = folder.join("puzzle-02.cu");
    assert_eq!(fs::read_to_string(&mine).unwrap(), file("puzzles/02-guard/start.cu"));
    let (code, text, _) = lab(&folder, &["puzzle", "02", "puzzle-02.cu"]);
    assert_eq!(code, 1);
    assert!(text.contains("WRONG  elements that nothing writes        yours 256, at most 0\n"), "{text}");
    assert!(text.contains("  out[0] was never written, should be 4\n"), "{text}");

    // The reader's file stays, whatever is in it.
    let solution = file("puzzles/02-guard/solution.cu");
    fs::write(&mine, &solution).unwrap();
    let (code, text, _) = lab(&folder, &["puzzle", "2"]);
    assert!(code == 0 && text.contains("already exists and was not changed"), "{text}");
    assert_eq!(fs::read_to_string(&mine).unwrap(), solution);
    let (code, text, _) = lab(&folder, &["puzzle", "02-guard", "puzzle-02.cu"]);
    assert_eq!(code, 0);
    assert!(text.contains("sectors per request                 yours 4.0, at most 4.0\n"), "{text}");
    assert!(text.ends_with("\nRight.\n"), "{text}");

    // The whole program is one that runs by itself.
    let (code, whole, _) = lab(&folder, &["puzzle", "02", "puzzle-02.cu", "--show"]);
    assert_eq!(code, 0);
    fs::write(folder.join("whole.cu"), whole).unwrap();
    let (code, text, _) = lab(&folder, &["whole.cu"]);
    assert!(code == 0 && text.starts_with("wrong: 0 of 256\n"), "{text}");
}

#[test]
fn a_fault_has_its_line_and_the_smallest_launch() {
    let folder = folder("fault");
    fs::write(folder.join("my.cu"), file("puzzles/05-shared/wrong/no_barrier.cu")).unwrap();
    let (code, text, _) = lab(&folder, &["puzzle", "05", "my.cu"]);
    assert_eq!(code, 1);
    assert!(text.contains("WRONG  races in shared memory              yours 1, at most 0\n"), "{text}");
    assert!(text.contains(" my.cu:11:") && text.contains("not judged, at most 8\n"), "{text}");
    assert!(
        text.contains(
            "The smallest launch that fails: n = 2, 1 block of 2 threads\n\nNot yet.\nOne thread writes a value"
        ),
        "{text}"
    );
    let (code, json, _) = lab(&folder, &["puzzle", "05", "my.cu", "--format", "json"]);
    assert_eq!(code, 1);
    for part in [
        "{\"right\":false,\"summary\":\"Not yet.\",\"advice\":[\"One thread writes a value that another reads",
        "{\"name\":\"races in shared memory\",\"passes\":false,\"yours\":\"1\",\"bound\":\"at most\",\"limit\":\"0\"}",
        "\"passes\":null,\"yours\":null,\"bound\":\"at most\",\"limit\":\"8\"}",
        "\"file\":\"my.cu\",\"line\":11,",
        "\"smallest\":\"n = 2, 1 block of 2 threads\"",
    ] {
        assert!(json.contains(part), "{part}: {json}");
    }
}

#[test]
fn a_case_is_shown_and_solved() {
    let folder = folder("case");
    let (code, text, _) = lab(&folder, &["case", "right_by_luck"]);
    assert_eq!(code, 0);
    for part in ["// Case: right_by_luck", " in right_by_luck.cu:24:9\n", "n = 2, 2 blocks of 1 thread\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (code, source, _) = lab(&folder, &["case", "right_by_luck", "--show"]);
    assert_eq!((code, source.as_str()), (0, file("cases/right_by_luck.cu").as_str()));
    for (text, wanted) in [(source, 1), (file("cases/fixed/right_by_luck.cu"), 0)] {
        fs::write(folder.join("my.cu"), text).unwrap();
        assert_eq!(lab(&folder, &["case", "right_by_luck", "my.cu"]).0, wanted);
    }
    assert!(lab(&folder, &["case"]).1.contains("  one_block_size\n"));
}

#[test]
fn wrong_usage_has_one_line_and_ends_with_2() {
    let folder = folder("usage");
    let cases: [(&[&str], &str); 9] = [
        (&["puzzle", "15"], "error: unknown puzzle `15`: the puzzles are 01-map, 02-guard, "),
        (&["puzzle", "map"], "error: unknown puzzle `map`"),
        (&["puzzle", ""], "error: unknown puzzle ``"),
        (&["puzzle", "01", "no.cu"], "error: the file no.cu cannot be read"),
        (&["puzzle", "01", "a.cu", "b.cu"], "error: a puzzle takes one file"),
        (&["puzzle", "01", "--check"], "error: unknown flag `--check`: expected --show or --format"),
        (&["puzzle", "01", "a.cu", "--format", "xml"], "error: unknown format `xml`"),
        (&["case", "x"], "error: unknown case `x`: the cases are missing_barrier, off_by_one, "),
        (&["case", "off_by_one", "no.cu"], "error: the file no.cu cannot be read"),
    ];
    for (arguments, wanted) in cases {
        let (code, _, text) = lab(&folder, arguments);
        assert_eq!(code, 2, "{arguments:?}");
        assert!(text.starts_with(wanted) && text.lines().count() == 1, "{arguments:?}: {text}");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "wrong usage writes no file");
}

#[test]
fn an_element_that_nothing_writes_counts_even_if_it_is_right_by_chance() {
    let folder = folder("half-repaired");
    let half = file("cases/fixed/off_by_one.cu").replace("if (i < n) {", "if (i < n - 1) {");
    fs::write(folder.join("my.cu"), half).unwrap();
    let (code, text, _) = lab(&folder, &["case", "off_by_one", "my.cu"]);
    assert_eq!(code, 1);
    assert!(text.contains("  WRONG  elements that nothing writes        yours 1, at most 0\n"), "{text}");
    assert!(text.ends_with(
        "\nNot yet.\nSome elements never get a value: is there a thread for each, and does it write?\n"
    ));

    fs::write(folder.join("my.cu"), file("cases/fixed/off_by_one.cu")).unwrap();
    let (code, text, _) = lab(&folder, &["case", "off_by_one", "my.cu"]);
    assert!(code == 0 && text.contains("\nRight.\nThe last thread read one element past the end"), "{text}");
}

#[test]
fn a_failed_gate_says_what_to_do() {
    let folder = folder("advice");
    let every_thread = "__global__ void square(const float *a, float *out, int n) {
    for (int i = 0; i < n; i++) out[i] = a[i] * a[i];
}";
    fs::write(folder.join("my.cu"), every_thread).unwrap();
    let (code, text, _) = lab(&folder, &["puzzle", "02", "my.cu"]);
    assert!(code == 1 && text.contains("\nNot yet.\nSeveral threads write the same element"), "{text}");

    let apart = file("puzzles/05-shared/wrong/no_tile.cu");
    fs::write(folder.join("my.cu"), apart).unwrap();
    let (code, text, _) = lab(&folder, &["puzzle", "05", "my.cu"]);
    let too_much = "\nNot yet: the numbers are right, but the kernel does too much work.\nA request is one access of a warp. ";
    assert!(code == 1 && text.contains(too_much), "{text}");
}
