//! The report of `verify --report`, and the notebook that asks for it.

use std::process::{Command, Output};

use serde_json::Value as Json;

const VERIFY: &str = env!("CARGO_BIN_EXE_verify");

/// Text that a sender would not share.
const HOME: &str = "/home/ada-of-the-engine";
const USER: &str = "ada-of-the-engine";
const HOST: &str = "difference-engine-7";

fn verify(folder: &std::path::Path, flags: &[&str]) -> (Output, String) {
    let file = folder.join("report.txt");
    let mut command = Command::new(VERIFY);
    command.arg("--report").arg(&file).args(flags);
    command
        .env("HOME", HOME)
        .env("USER", USER)
        .env("LOGNAME", USER)
        .env("HOSTNAME", HOST)
        .current_dir(folder);
    let output = command.output().unwrap();
    (output, std::fs::read_to_string(&file).unwrap_or_default())
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("report-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_report_has_the_card_and_the_differences_and_nothing_of_its_owner() {
    let folder = folder("owner");
    // A lab that cannot read its data names the path.
    let data = format!("{HOME}/pictures of {USER} on {HOST}");
    let flags = ["--gpu", "sim:rtx4090", "lab-06", "lab-02", "--", "--data", data.as_str()];
    let (output, report) = verify(&folder, &flags);
    std::fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains(HOME), "the fault is one that names a path: {said}");
    assert!(report.contains("\nlab-06: differs\n"), "{report}");
    assert!(
        report.contains("\ncard: NVIDIA GeForce RTX 4090 (simulated), compute capability 8.9, "),
        "{report}"
    );
    assert!(report.contains("\ndriver: none, the card is simulated\nsystem: "), "{report}");
    assert!(report.ends_with("\nresult: 0 of 2 labs are the same\n"), "{report}");
    let hostname = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/").replace("/labs/", "");
    let temporary = folder.display().to_string();
    for secret in [HOME, USER, HOST, hostname.trim(), &checkout, &temporary] {
        assert!(secret.is_empty() || !report.contains(secret), "{secret}: {report}");
    }
    assert_eq!(report.matches(" /").count(), 0, "{report}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_report_of_a_card_has_the_versions_of_its_libraries() {
    let stand_ins = crate::stand_ins::stand_ins(todevice::cuda::kernel_signatures);
    let folder = folder("card");
    let file = folder.join("report.txt");
    let mut command = Command::new(VERIFY);
    let output =
        stand_ins.on(&mut command).arg("--report").arg(&file).args(["lab-02", "lab-05"]).output().unwrap();
    let report = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success(), "{report}");
    let lines: Vec<&str> = report.lines().skip(1).collect();
    let expected = [
        "card: Stand-in for a GPU, compute capability 7.5, 1024 MiB, 40 multiprocessors",
        "driver: 610.43.02, CUDA 12.4; NVRTC 12.9, cuBLAS 12, cuDNN 9.19.0",
        "system: linux x86_64",
        "compared with: sim:t4",
        "",
        "lab-02: the same",
        "lab-05: the same",
        "  not compared: section 4, because it depends on what other programs hold",
        "result: 2 of 2 labs are the same",
    ];
    let expected = expected.map(|line| line.replace("x86_64", std::env::consts::ARCH));
    assert_eq!(lines, expected, "{report}");
}

#[test]
fn a_report_that_cannot_be_written_is_refused_at_once() {
    let output =
        Command::new(VERIFY).args(["--gpu", "sim:t4", "--report", "/nowhere/report.txt"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("error: --report /nowhere/report.txt: "), "{error}");
    assert_eq!(
        (output.status.code(), error.lines().count(), &*output.stdout),
        (Some(2), 1, &b""[..]),
        "{error}"
    );
}

/// Jupyter can open the notebook, and its commands are those of the course.
#[test]
fn the_notebook_for_a_free_card_runs_programs_and_flags_that_there_are() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/card/t4.ipynb");
    let notebook: Json = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!((&notebook["nbformat"], &notebook["nbformat_minor"]), (&4.into(), &4.into()));
    let cells = notebook["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3);
    let mut programs = Vec::new();
    for cell in cells {
        assert_eq!((&cell["cell_type"], &cell["outputs"]), (&"code".into(), &Json::Array(Vec::new())));
        assert!(cell["metadata"].is_object() && cell["execution_count"].is_null());
        for line in cell["source"].as_array().unwrap() {
            let line = line.as_str().unwrap().trim_end();
            let Some(command) = line.strip_prefix("!cargo ") else {
                assert!(!line.contains("cargo run"), "{line}");
                continue;
            };
            let (program, flags) = command.strip_prefix("run --bin ").unwrap().split_once(" -- ").unwrap();
            let binary = match program {
                "doctor" => env!("CARGO_BIN_EXE_doctor"),
                "lab-03" => env!("CARGO_BIN_EXE_lab-03"),
                "verify" => VERIFY,
                _ => panic!("{line}"),
            };
            let help = Command::new(binary).arg("--help").output().unwrap();
            let help = String::from_utf8(help.stdout).unwrap();
            for flag in flags.split(' ').filter(|word| word.starts_with("--")) {
                assert!(help.contains(&format!("{flag} <")), "{line}: {help}");
            }
            assert!(flags.starts_with("--gpu real"), "{line}");
            programs.push(program);
        }
    }
    assert_eq!(programs, ["doctor", "lab-03", "verify"]);
    let first = cells[0]["source"].to_string();
    // It downloads the same as the README.
    let readme = include_str!("../../README.md");
    let fetched = readme.lines().find_map(|line| line.strip_prefix("git clone ")).unwrap();
    assert!(first.contains("UNTESTED") && first.contains(fetched), "{first}");
}
