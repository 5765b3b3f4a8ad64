//! A lab as a program: streams, exit codes, colours, pipes.
//!
//! This test starts itself again as a lab, hence its own `main` (`harness = false`).

mod tiny;

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitCode, Output, Stdio};

/// Set in the processes that play the lab.
const PLAY_LAB: &str = "LABS_TEST_PLAY_LAB";

fn main() -> ExitCode {
    if std::env::var_os(PLAY_LAB).is_some() {
        return labs::main(&tiny::LAB);
    }
    piped_text_is_plain_and_equal_to_the_captured();
    json_alone_reaches_stdout();
    errors_go_to_stderr_with_their_exit_code();
    colours_follow_flag_and_environment();
    what_the_environment_has_for_pytorch_alone_is_ignored_with_a_warning();
    a_closed_pipe_ends_the_lab_quietly();
    a_closed_pipe_ends_every_program_quietly();
    a_file_that_cannot_be_written_is_refused_before_the_work();
    #[cfg(target_os = "linux")]
    a_full_disk_is_an_error();
    #[cfg(target_os = "linux")]
    a_full_disk_is_an_error_of_every_program();
    ExitCode::SUCCESS
}

fn lab(flags: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    for variable in ["NO_COLOR", "CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"] {
        command.env_remove(variable);
    }
    command.args(flags).env(PLAY_LAB, "1").stdin(Stdio::null());
    command
}

fn output(command: &mut Command) -> (String, String, i32) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), status.code().unwrap())
}

fn piped_text_is_plain_and_equal_to_the_captured() {
    let captured = labs::run_captured(&tiny::LAB, &[]);
    assert_eq!(output(&mut lab(&[])), (captured.text, String::new(), 0));
}

fn json_alone_reaches_stdout() {
    let captured = labs::run_captured(&tiny::LAB, &["--fail"]);
    let failure = "error: lab-99 failed: the optimizer has no parameters\n".to_owned();
    // Colours never get into JSON.
    let flags = ["--fail", "--format", "json", "--color", "always"];
    assert_eq!(output(&mut lab(&flags)), (captured.json, failure, 1));
}

fn errors_go_to_stderr_with_their_exit_code() {
    let (stdout, stderr, code) = output(&mut lab(&["--epochs", "-1"]));
    let expected =
        "error: invalid value '-1' for '--epochs <EPOCHS>': expected a whole number from 1 to 1000000\n";
    assert_eq!((stdout.as_str(), stderr.as_str(), code), ("", expected, 2));

    let (stdout, stderr, code) = output(&mut lab(&["--fail"]));
    assert!(stdout.ends_with("[picture: two copies, one after the other]\n"), "{stdout}");
    assert_eq!((stderr.as_str(), code), ("error: lab-99 failed: the optimizer has no parameters\n", 1));

    let (stdout, stderr, code) = output(&mut lab(&["--section", "9"]));
    assert!(stdout.starts_with("lab-99: ") && stdout.lines().count() == 2, "{stdout}");
    assert_eq!((stderr.as_str(), code), ("error: --section 9: lab-99 has 1, A2, 3\n", 2));

    let (stdout, stderr, code) = output(&mut lab(&["--help"]));
    assert!(stdout.starts_with("One of everything\n"), "{stdout}");
    assert_eq!((stderr.as_str(), code), ("", 0));
}

fn colours_follow_flag_and_environment() {
    let coloured = |command: &mut Command| output(command).0.contains('\u{1b}');
    assert!(!coloured(&mut lab(&["--color", "auto"]))); // a pipe
    assert!(!coloured(&mut lab(&["--color", "never"])));
    assert!(coloured(&mut lab(&["--color", "always"])));
    // What was asked for on this command line beats what the environment asks for in general.
    assert!(coloured(lab(&["--color", "always"]).env("NO_COLOR", "1")));
}

fn what_the_environment_has_for_pytorch_alone_is_ignored_with_a_warning() {
    let ignored = "expandable_segments:True,max_split_size_mb:200,foo:bar";
    for gpu in ["none", "sim:t4", "auto"] {
        let flags = ["--gpu", gpu];
        let (plain, _, _) = output(&mut lab(&flags));
        let (stdout, stderr, code) = output(lab(&flags).env("PYTORCH_CUDA_ALLOC_CONF", ignored));
        assert_eq!((stdout, code), (plain, 0));
        let warnings = "warning: PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True is not supported by this allocator (ignored)
warning: PYTORCH_CUDA_ALLOC_CONF: Unrecognized key 'foo' in Accelerator allocator config. (ignored)
";
        assert!(stderr.ends_with(warnings) && stderr.matches("PYTORCH").count() == 2, "{stderr}");
    }
}

fn a_closed_pipe_ends_the_lab_quietly() {
    let mut child =
        lab(&["--epochs", "1000000"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap(); // and closes the pipe
    assert_eq!(first, "lab-99: One of everything\n");
    let mut complaint = String::new();
    child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
    assert_eq!((child.wait().unwrap().code(), complaint.as_str()), (Some(0), ""));
}

/// The other programs, and what makes each print.
const PROGRAMS: [(&str, &[&str]); 10] = [
    (env!("CARGO_BIN_EXE_verify"), &["--gpu", "sim:t4", "lab-00"]),
    (env!("CARGO_BIN_EXE_verify"), &["--gpu", "sim:t4", "--alone", "lab-00"]),
    (env!("CARGO_BIN_EXE_verify"), &["--help"]),
    (env!("CARGO_BIN_EXE_calibrate"), &["--gpu", "sim:t4"]),
    (env!("CARGO_BIN_EXE_calibrate"), &["--help"]),
    (env!("CARGO_BIN_EXE_calibrate"), &["--version"]),
    (env!("CARGO_BIN_EXE_doctor"), &[]),
    (env!("CARGO_BIN_EXE_doctor"), &["--help"]),
    (env!("CARGO_BIN_EXE_lab-03"), &["--help"]),
    (env!("CARGO_BIN_EXE_lab-03"), &["--version"]),
];

fn a_closed_pipe_ends_every_program_quietly() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    for (program, flags) in PROGRAMS {
        let mut command = Command::new(program);
        let (_, stderr, code) = output(command.args(flags).stdout(writer.try_clone().unwrap()));
        assert_eq!((stderr.as_str(), code), ("", 0), "{program} {flags:?}");
    }
}

fn a_file_that_cannot_be_written_is_refused_before_the_work() {
    let folder = std::env::temp_dir().join(format!("labs-terminal-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("folder.profile")).unwrap();
    for (program, flag, name) in [
        (env!("CARGO_BIN_EXE_calibrate"), "--output", "nowhere/x.profile"),
        (env!("CARGO_BIN_EXE_calibrate"), "--output", "folder.profile"),
        (env!("CARGO_BIN_EXE_lab-03"), "--trace", "nowhere/x.json"),
    ] {
        let file = folder.join(name).display().to_string();
        let (stdout, stderr, code) = output(Command::new(program).args(["--gpu", "sim:t4", flag, &file]));
        assert!(stderr.starts_with(&format!("error: {flag} {file}: ")), "{stderr}");
        assert_eq!((stdout.as_str(), stderr.lines().count(), code), ("", 1, 2), "{stderr}");
    }
    // What is there stays until there is something better, and nothing is left where there is not.
    let (old, new) = (folder.join("old.profile"), folder.join("new.profile"));
    std::fs::write(&old, "measured with care").unwrap();
    for file in [&old, &new] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
        let (_, stderr, code) = output(command.args(["--gpu", "none", "--output"]).arg(file));
        assert!(stderr.starts_with("error: ") && code == 1, "{stderr}");
    }
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "measured with care");
    assert!(!new.exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let (_, stderr, code) = output(lab(&[]).stdout(full));
    assert!(stderr.starts_with("error: the output cannot be written: "), "{stderr}");
    assert_eq!((stderr.lines().count(), code), (1, 1));
}

#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_of_every_program() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    for (program, flags) in PROGRAMS {
        let mut command = Command::new(program);
        let (_, stderr, code) = output(command.args(flags).stdout(full.try_clone().unwrap()));
        assert!(stderr.starts_with("error: the output cannot be written: "), "{program} {flags:?}: {stderr}");
        assert_eq!((stderr.lines().count(), code), (1, 1), "{program} {flags:?}");
        // Where nothing can be said, the exit code still can.
        let mut command = Command::new(program);
        let (_, _, code) = output(command.arg("--nope").stderr(full.try_clone().unwrap()));
        assert_eq!(code, 2, "{program}");
    }
}
