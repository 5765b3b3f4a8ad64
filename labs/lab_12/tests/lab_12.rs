//! The binary as a reader runs it: what it prints, and its exit codes.

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
    let cases: [(&[&str], &str); 6] = [
        (&[&wrong], "error: unknown name `x`"),
        (&["no.cu"], "error: the file no.cu cannot be read"),
        (&["--chek"], "error: there is no flag `--chek`"),
        (&["--check", "racechek"], "error: there is no check `racechek`"),
        (&["--format", "xml"], "error: there is no format `xml`"),
        (&["--check"], "error: `--check` needs a value"),
    ];
    for (arguments, wanted) in cases {
        let output = lab(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text.starts_with(wanted), "{arguments:?}: {text}");
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
