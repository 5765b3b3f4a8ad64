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
    #[cfg(target_os = "linux")]
    a_full_disk_is_an_error();
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

#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let (_, stderr, code) = output(lab(&[]).stdout(full));
    assert!(stderr.starts_with("error: the output cannot be written: "), "{stderr}");
    assert_eq!((stderr.lines().count(), code), (1, 1));
}
