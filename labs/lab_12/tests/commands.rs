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
    assert!(text.ends_with("\nRight.\nNext: cargo run --bin lab-12 -- puzzle 03\n"), "{text}");

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
fn a_case_is_begun_kept_and_solved() {
    let folder = folder("case");
    let (code, text, _) = lab(&folder, &["case", "right_by_luck"]);
    let source = file("cases/right_by_luck.cu");
    let next = "cargo run --bin lab-12 -- case right_by_luck right_by_luck.cu\n";
    // The source alone: the report would give the mistake away.
    let written = format!("{source}\nWritten to right_by_luck.cu. Edit it, then: {next}");
    assert_eq!((code, text), (0, written));
    assert_eq!(lab(&folder, &["case", "right_by_luck", "--show"]), (0, source.clone(), String::new()));
    let mine = folder.join("right_by_luck.cu");
    assert_eq!(fs::read_to_string(&mine).unwrap(), source);
    let (code, text, _) = lab(&folder, &["case", "right_by_luck", "right_by_luck.cu"]);
    assert_eq!(code, 1);
    for part in [
        " in right_by_luck.cu:24:9\n",
        "n = 2, 2 blocks of 1 thread\n\nNot yet.\nOne block reads what another",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let solution = file("cases/fixed/right_by_luck.cu");
    fs::write(&mine, &solution).unwrap();
    let (code, text, _) = lab(&folder, &["case", "right_by_luck"]);
    assert!(code == 0 && text.contains("already exists and was not changed"), "{text}");
    assert_eq!(fs::read_to_string(&mine).unwrap(), solution);
    let (code, text, _) = lab(&folder, &["case", "right_by_luck", "right_by_luck.cu"]);
    assert!(code == 0 && text.ends_with("\nNext: cargo run --bin lab-12 -- case one_block_size\n"), "{text}");
    assert!(lab(&folder, &["case"]).1.contains("  one_block_size\n"));
}

#[test]
fn a_puzzle_has_a_name_and_both_commands_have_help() {
    let folder = folder("named");
    let (code, text, _) = lab(&folder, &["puzzle", "shared"]);
    assert!(code == 0 && text.contains("Written to puzzle-05.cu."), "{text}");
    for arguments in [&["puzzle", "--help"][..], &["puzzle", "03", "-h"], &["case", "--help"]] {
        let (code, text, _) = lab(&folder, arguments);
        assert!(code == 0 && text.contains("Usage: cargo run --bin lab-12 -- puzzle "), "{text}");
    }
    fs::write(folder.join("last.cu"), file("puzzles/14-matmul-tile/solution.cu")).unwrap();
    let (code, text, _) = lab(&folder, &["puzzle", "14", "last.cu"]);
    assert!(code == 0 && text.ends_with("\nRight.\nThat was the last one.\n"), "{text}");
}

#[test]
fn wrong_usage_has_one_line_and_ends_with_2() {
    let folder = folder("usage");
    let cases: [(&[&str], &str); 9] = [
        (&["puzzle", "15"], "error: unknown puzzle `15`: the puzzles are 01-map, 02-guard, "),
        (&["puzzle", "maps"], "error: unknown puzzle `maps`"),
        (&["puzzle", ""], "error: unknown puzzle ``"),
        (&["puzzle", "01", "no.cu"], "error: the file no.cu cannot be read"),
        (&["puzzle", "01", "a.cu", "b.cu"], "error: a puzzle takes one file"),
        (&["puzzle", "01", "--check"], "error: unknown flag `--check`: expected --show, --format or --help"),
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
    assert!(text.contains("\n  out[999] was never written\n"), "{text}");
    assert!(text.ends_with(
        "\nNot yet.\nSome elements never get a value: is there a thread for each, and does it write?\n"
    ));

    fs::write(folder.join("my.cu"), file("cases/fixed/off_by_one.cu")).unwrap();
    let (code, text, _) = lab(&folder, &["case", "off_by_one", "my.cu"]);
    assert!(code == 0 && text.contains("\nRight.\nThe last thread read one element past the end"), "{text}");
}

/// Elements that nothing writes are counted and shown apart from wrong ones.
#[test]
fn only_elements_that_nothing_writes_count_as_such() {
    let folder = folder("missing");
    let one_dimension = "__global__ void table_of_sums(const float *left, const float *top, float *out, int rows, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns && (row > 0 || column != 5)) out[row * columns + column] = 1000;
}";
    let all = "__global__ void window_sums(const float *a, float *out, int n) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= 2 && i < n) out[i] = 1000;
}";
    for (puzzle, kernel, count, element) in [
        ("04", one_dimension, 1, "out[0][5] was never written, should be "),
        ("06", all, 2, "out[0] was never written, should be "),
    ] {
        fs::write(folder.join("my.cu"), kernel).unwrap();
        let (_, text, _) = lab(&folder, &["puzzle", puzzle, "my.cu"]);
        let gate = format!("WRONG  elements that nothing writes        yours {count}, at most 0\n");
        assert!(text.contains(&gate) && text.contains(element), "{text}");
    }

    let case = file("cases/nobody_writes.cu");
    fs::write(folder.join("my.cu"), &case).unwrap();
    let (_, text, _) = lab(&folder, &["case", "nobody_writes", "my.cu"]);
    for part in ["yours 104, at most 0\n", "  out[896] was never written, should be 1794\n"] {
        assert!(text.contains(part) && !text.contains("`ceil`"), "{text}");
    }
    fs::write(folder.join("my.cu"), case.replace("n / BLOCK,", "ceil(n / BLOCK),")).unwrap();
    let (_, text, _) = lab(&folder, &["case", "nobody_writes", "my.cu"]);
    assert!(
        text.contains("drops the fraction before `ceil` sees it: write `(n + BLOCK - 1) / BLOCK`"),
        "{text}"
    );
}

/// An index below the start of an array in shared memory is reported as one of shared memory.
#[test]
fn an_index_below_the_tile_names_the_tile() {
    let folder = folder("below");
    let kernel = file("puzzles/06-stencil/solution.cu")
        .replace("tile[threadIdx.x + k]", "tile[int(threadIdx.x) + k - 2]");
    assert!(kernel.contains("k - 2"));
    fs::write(folder.join("my.cu"), kernel).unwrap();
    let (_, text, _) = lab(&folder, &["puzzle", "06", "my.cu"]);
    for part in [
        "Invalid __shared__ read of size 4 bytes\n",
        "and is 8 bytes before `tile` of size 272 bytes\n",
        "guard the index, or shift it.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// The hint for a race depends on the two accesses, and that for wrong elements on the gate.
#[test]
fn hints_are_about_the_mistake() {
    let folder = folder("hints");
    let in_place = file("puzzles/10-scan/wrong/reads_and_writes_at_once.cu");
    let with_barrier = in_place.replace(
        "        __syncthreads();\n    }",
        "        __syncthreads();\n        __syncthreads();\n    }",
    );
    let swapped = file("puzzles/03-two-dimensions/solution.cu")
        .replace("row * columns + column", "row * rows + column");
    let negative_zero = "__global__ void scale_rows(const float *a, float *out, int rows, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) out[row * columns + column] = a[row * columns + column];
}";
    let histogram =
        file("puzzles/11-histogram/solution.cu").replace("atomicAdd(&counts[a[i]], 1)", "counts[a[i]]++");
    let cases = [
        ("10", in_place, "This line reads and writes. Split it: "),
        ("10", with_barrier, "This line reads and writes. Split it: "),
        ("03", swapped, "Two threads write the same element: is the index right?"),
        ("03", negative_zero.to_owned(), ", should be 0\n"),
        ("11", histogram, "Several threads change the same element at once."),
        (
            "08",
            file("puzzles/08-dot/wrong/plain_addition.cu"),
            "Several threads change the same element at once.",
        ),
        ("13", file("puzzles/13-softmax/wrong/no_maximum.cu"), "Is `m` subtracted in both places?"),
        (
            "02",
            file("puzzles/02-guard/wrong/whole_blocks_only.cu"),
            "Do those with an element still do their work",
        ),
        ("01", file("puzzles/01-map/wrong/number_within_the_block.cu"), "blockIdx.x * blockDim.x"),
    ];
    for (puzzle, kernel, hint) in cases {
        fs::write(folder.join("my.cu"), kernel).unwrap();
        let (code, text, _) = lab(&folder, &["puzzle", puzzle, "my.cu"]);
        assert!(code == 1 && text.contains(hint), "{hint}: {text}");
    }
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
