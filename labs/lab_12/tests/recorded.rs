//! The outputs and figures that chapter 12 shows are those of the lab. `KEEP_RECORDS=1` writes them anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// What the lab prints in the root of the checkout.
fn printed(arguments: &[&str]) -> String {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_lab-12"));
    let output = lab.args(arguments).current_dir(root().join("../..")).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.is_empty(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

const COMMAND: &str = "cargo run --bin lab-12 -- ";

/// The records, each with the command whose output it holds: the one in its first line, or, of a new one, this.
fn records() -> BTreeMap<PathBuf, String> {
    let mut records = BTreeMap::new();
    for folder in ["examples", "ladder"] {
        for entry in fs::read_dir(root().join(folder)).into_iter().flatten() {
            let path = entry.unwrap().path();
            // A ladder is a folder of programs; an example is a program, or kernels without one, for `train`.
            let is_shown = match folder {
                "ladder" => path.is_dir(),
                _ => path.extension().is_some_and(|ending| ending == "cu") && is_program(&path),
            };
            if !is_shown {
                continue;
            }
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let wanted = match folder {
                "examples" => vec![(name.clone(), format!("{COMMAND}labs/lab_12/examples/{name}.cu"))],
                _ => vec![
                    (name.clone(), format!("{COMMAND}ladder {name}")),
                    (format!("{name}-cards"), format!("{COMMAND}ladder {name} --gpu all")),
                ],
            };
            for (name, command) in wanted {
                let record = path.with_file_name(format!("{name}.txt"));
                let text = fs::read_to_string(&record).unwrap_or_default();
                let named = text.lines().next().and_then(|line| line.strip_prefix("$ ")).map(str::to_owned);
                records.insert(record, named.unwrap_or(command));
            }
        }
    }
    records
}

fn is_program(path: &Path) -> bool {
    fs::read_to_string(path).unwrap().contains("int main()")
}

/// The number after this label in the table of counters.
fn counter(table: &str, label: &str) -> String {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(label));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.unwrap_or_else(|| panic!("no `{label}` in {table}")).replace(',', "")
}

/// The number of errors in an example after a change.
fn errors_of(example: &str, from: &str, to: &str) -> String {
    let text = fs::read_to_string(root().join("examples").join(example)).unwrap();
    assert!(text.contains(from), "{example} has no `{from}`");
    let changed = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("changed-{example}"));
    fs::write(&changed, text.replacen(from, to, 1)).unwrap();
    let report = printed(&[changed.to_str().unwrap()]);
    let summary = report.rsplit_once("ERROR SUMMARY: ").unwrap().1;
    summary.split(' ').next().unwrap().to_owned()
}

/// The figures, as the book reads them: a name, a value, a unit, and whether it is modelled.
fn figures() -> String {
    let mut text = String::from("# Written by `KEEP_RECORDS=1 cargo test -p lab-12 --test recorded`.\n");
    let mut note = |name: &str, value: String, unit: &str| text += &format!("{name} {value} {unit}\n");

    let counters = printed(&["labs/lab_12/examples/vector_add.cu", "--counters"]);
    // `4 blocks of 256 threads: no error`
    let launch: Vec<usize> =
        counters.lines().next().unwrap().split(' ').filter_map(|word| word.parse().ok()).collect();
    let [blocks, threads] = launch[..] else { panic!("{counters}") };
    let elements: usize = counter(&counters, "operations on floats").parse().unwrap();
    note("blocks", blocks.to_string(), "-");
    note("threads", (blocks * threads).to_string(), "-");
    note("idle", (blocks * threads - elements).to_string(), "threads");
    note("other_row_errors", errors_of("labels.cu", "{3, 0, 9, 10}", "{3, 10, 9, 0}"), "-");
    note("sectors_per_request", counter(&counters, "global loads: sectors per request"), "-");
    for (ladder, times, reference) in
        [("reduction", "sum_time", "read_time"), ("matmul", "product_time", "cublas_time")]
    {
        let mut of_ladder = microseconds(&printed(&["ladder", ladder, "--format", "json"]));
        let last = of_ladder.pop().unwrap();
        for time in of_ladder {
            note(times, format!("{:.2}", time / 1e3), "ms modelled");
        }
        note(reference, format!("{:.2}", last / 1e3), "ms modelled");
    }
    text
}

/// The modelled times of a ladder's steps, and of what stands below them.
fn microseconds(json: &str) -> Vec<f64> {
    let times = json.split("\"modelled_microseconds\":").skip(1);
    times.map(|rest| rest.split([',', '}']).next().unwrap().parse().unwrap()).collect()
}

#[test]
fn what_the_book_shows_is_what_the_lab_prints() {
    let mut wanted = BTreeMap::from([(root().join("recorded/figures.txt"), figures())]);
    for (record, command) in records() {
        let flags =
            command.strip_prefix(COMMAND).unwrap_or_else(|| panic!("{}: `{command}`", record.display()));
        let flags: Vec<&str> = flags.split_whitespace().collect();
        wanted.insert(record, format!("$ {command}\n{}", printed(&flags)));
    }
    for (file, text) in wanted {
        if env::var_os("KEEP_RECORDS").is_some() {
            fs::write(&file, &text).unwrap();
        }
        let found = fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
        assert!(
            found == text,
            "{}: to write it anew, set KEEP_RECORDS=1\n{found}\nand now\n{text}",
            file.display()
        );
    }
}

/// The commands of the chapter and of the README do what they say: they end with 0, or with 1 if they find something.
#[test]
fn the_commands_of_the_chapter_run() {
    let checkout = root().join("../..");
    let mut texts = vec!["README.md".to_owned(), "labs/lab_12/commands.txt".to_owned()];
    for page in fs::read_dir(checkout.join("book/chapters")).unwrap() {
        let name = page.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            texts.push(format!("book/chapters/{name}"));
        }
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("commands");
    fs::create_dir_all(&folder).unwrap();
    let mut count = 0;
    for file in texts {
        let text = fs::read_to_string(checkout.join(&file)).unwrap();
        for (_, rest) in text.match_indices("cargo run --bin lab-12").map(|(at, _)| text.split_at(at)) {
            // To the end of the line, of the code within a line, or to a comment.
            let command = rest.split(['\n', '`']).next().unwrap().split(" #").next().unwrap();
            let flags = command["cargo run --bin lab-12".len()..].trim().trim_start_matches("-- ");
            let (flags, into) =
                flags.split_once(" > ").map_or((flags, None), |(flags, into)| (flags, Some(into)));
            let mut lab = Command::new(env!("CARGO_BIN_EXE_lab-12"));
            // A card is not at hand: only the flags are tested.
            if flags.starts_with("compare") {
                let output = lab.args(flags.split_whitespace()).env("PATH", "").output().unwrap();
                let errors = String::from_utf8(output.stderr).unwrap();
                let is_without = errors.starts_with("error: compare: no NVIDIA driver: ")
                    || errors.starts_with("error: compare: `nvcc` does not start: ");
                assert!(output.status.success() || is_without, "{file}: `{command}`: {errors}");
                continue;
            }
            // The program that the commands name.
            fs::write(folder.join("my.cu"), fs::read(root().join("examples/vector_add.cu")).unwrap())
                .unwrap();
            let output = lab.args(flags.split_whitespace()).current_dir(&folder).output().unwrap();
            assert!(matches!(output.status.code(), Some(0 | 1)), "{file}: `{command}`: {output:?}");
            assert!(
                into.is_none_or(|into| into.ends_with(".cu") && output.stdout.starts_with(b"//")),
                "{file}: `{command}`"
            );
            count += 1;
        }
    }
    assert!(count >= 4, "{count}");
}
