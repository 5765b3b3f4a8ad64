//! Tests of the binary as a reader runs it: its output and exit codes.

use std::process::{Command, Output};

fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab-12")).args(arguments).output().unwrap()
}

fn file(name: &str, text: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn without_a_file_it_runs_an_example_and_says_how_to_go_on() {
    let output = lab(&[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        text.starts_with("4 blocks of 256 threads: no error\nout[0] = 0, out[1] = 3, out[999] = 2997\n"),
        "{text}"
    );
    assert!(
        text.contains("ERROR SUMMARY: 0 errors") && text.contains("cargo run --bin lab-12 -- my.cu"),
        "{text}"
    );
}

#[test]
fn findings_end_with_1_and_bad_input_with_2() {
    let racy = file(
        "racy.cu",
        "__global__ void k(int *p) { p[0] = threadIdx.x; }\nint main() { int *p; cudaMalloc(&p, 4); k<<<1, 64>>>(p); cudaDeviceSynchronize(); }\n",
    );
    let output = lab(&[&racy]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.contains("Error: Race reported between Write access at k(int *) in ")
            && text.contains("racy.cu:1:29"),
        "{text}"
    );
    assert_eq!(lab(&[&racy, "--check", "memcheck"]).status.code(), Some(0));
    let json = String::from_utf8(lab(&[&racy, "--format", "json"]).stdout).unwrap();
    assert!(json.contains("\"check\":\"racecheck\"") && json.contains("\"line\":1,\"column\":29"), "{json}");

    let wrong = file("wrong.cu", "int main() { return x; }\n");
    let cases: [(&[&str], &str); 9] = [
        (&[&wrong], "error: unknown name `x`"),
        (&["no.cu"], "error: the file no.cu cannot be read"),
        (&["--chek"], "error: there is no flag `--chek`"),
        (&["--check", "racechek"], "error: there is no check `racechek`"),
        (&["--format", "xml"], "error: there is no format `xml`"),
        (&["--check"], "error: `--check` needs a value"),
        (&["--counters", "--check", "all"], "error: `--check` and `--counters` are two runs"),
        (
            &["--counters", "--registers", "256"],
            "error: `--registers 256`: a thread takes 1 to 255 registers",
        ),
        (&["--registers", "8"], "error: `--registers` is for the occupancy that `--counters` shows"),
    ];
    for (arguments, wanted) in cases {
        let output = lab(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text.starts_with(wanted), "{arguments:?}: {text}");
    }
}

/// The book shows each example next to its record: a text file with the command in its first line, and what it prints.
/// `KEEP_RECORDS=1 cargo test -p lab-12` writes the records anew.
#[test]
fn the_records_of_the_examples_are_what_they_print() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let examples = root.join("labs/lab_12/examples");
    let all = std::fs::read_dir(examples).unwrap().map(|entry| entry.unwrap().path());
    for example in all.filter(|path| path.extension().is_some_and(|extension| extension == "cu")) {
        let file = example.with_extension("txt");
        let record = std::fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
        let name = example.file_name().unwrap().to_str().unwrap();
        let first = format!("$ cargo run --bin lab-12 -- labs/lab_12/examples/{name}");
        let command = record.lines().next().unwrap_or(&first);
        let flags =
            command.strip_prefix(&first).unwrap_or_else(|| panic!("{name}: the record begins with {first}"));
        let output = Command::new(env!("CARGO_BIN_EXE_lab-12"))
            .arg(format!("labs/lab_12/examples/{name}"))
            .args(flags.split_whitespace())
            .current_dir(&root)
            .output()
            .unwrap();
        assert!(output.stderr.is_empty(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let now = format!("{command}\n{}", String::from_utf8(output.stdout).unwrap());
        match std::env::var_os("KEEP_RECORDS") {
            Some(_) => std::fs::write(&file, now).unwrap(),
            None => assert_eq!(now, record, "{name}: KEEP_RECORDS=1 writes the record anew"),
        }
    }
}

#[test]
fn counters_are_a_table_or_json() {
    let output = lab(&["--counters"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    // 4 blocks of 8 warps, and 1,000 of 1,024 threads: 32 warps read two arrays, the last one only 8 words of each.
    for line in [
        "add(const float *, const float *, float *, int): 1 launch of 4 blocks of 256 threads",
        "global loads: requests                      64  l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "global loads: sectors                      250  l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "divergent branches                           1  smsp__sass_branch_targets_threads_divergent.sum",
        "registers of a thread                  unknown  launch__registers_per_thread",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let json = String::from_utf8(lab(&["--counters", "--registers=65", "--format", "json"]).stdout).unwrap();
    for part in [
        "\"name\":\"blocks by registers\",\"value\":3,",
        "\"name\":\"occupancy, %\",\"value\":75.0,",
        "{\"output\":\"4 blocks",
    ] {
        assert!(json.contains(part) && json.ends_with("]}]}\n"), "{json}");
    }
}

/// The course's kernels have the register counts of NVIDIA's compiler; a changed kernel has none.
#[test]
fn registers_of_the_courses_kernels_are_known() {
    let kernels = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels");
    let program = "#include \"scaler.cu\"\nint main() { float *p; int *n; View v = {}; cudaMalloc(&p, 4); \
         cudaMalloc(&n, 4); cudaMemset(p, 0, 4); cudaMemset(n, 0, 4); \
         amp_update_scale<<<1, 32>>>(p, 0.0f, v, p, v, n, v, 1, 2.0, 0.5); return cudaDeviceSynchronize(); }\n";
    let source = std::fs::read_to_string(kernels.join("scaler.cu")).unwrap();
    for (folder, source, wanted) in
        [("same", source.clone(), "thread 7 "), ("other", source + "\n", "thread unknown ")]
    {
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        for header in std::fs::read_dir(&kernels).unwrap().map(|entry| entry.unwrap().path()) {
            if header.extension().is_some_and(|extension| extension == "cuh") {
                std::fs::copy(&header, folder.join(header.file_name().unwrap())).unwrap();
            }
        }
        std::fs::write(folder.join("scaler.cu"), source).unwrap();
        std::fs::write(folder.join("my.cu"), program).unwrap();
        let output = lab(&[&folder.join("my.cu").display().to_string(), "--counters"]);
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find(|line| line.contains("registers of a thread")).unwrap_or(&text);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(words.join(" ").contains(wanted), "{text}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_closed_or_full_stdout_is_no_panic() {
    use std::process::Stdio;
    for arguments in [&[][..], &["--help"], &["--show"], &["--format", "json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        for (to, code, wanted) in
            [(Stdio::from(writer), 0, ""), (Stdio::from(full), 2, "error: the output cannot be written")]
        {
            let lab = Command::new(env!("CARGO_BIN_EXE_lab-12")).args(arguments).stdout(to).output().unwrap();
            let text = String::from_utf8(lab.stderr).unwrap();
            assert_eq!(lab.status.code(), Some(code), "{arguments:?}: {text}");
            assert!(
                text.starts_with(wanted) && text.is_empty() == wanted.is_empty(),
                "{arguments:?}: {text}"
            );
        }
    }
}
