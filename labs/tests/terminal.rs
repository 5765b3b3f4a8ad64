//! A lab as a program: streams, exit codes, colours, pipes.
//!
//! This test runs itself as a lab, hence its own `main` (`harness = false`).

mod tiny;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Output, Stdio};

/// Set in the child processes that act as the lab.
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
    no_argument_reaches_a_terminal_as_it_is();
    no_name_in_a_file_reaches_a_terminal_as_it_is();
    a_reader_who_asks_for_it_is_asked_and_told();
    what_is_no_answer_is_asked_for_again_and_nothing_skips();
    nobody_is_asked_after_the_end_of_the_input();
    questions_stay_out_of_json();
    a_section_asks_its_own_questions_only();
    progress_is_kept_and_what_else_was_kept_stays();
    #[cfg(unix)]
    a_link_beside_its_file_is_followed();
    a_file_that_is_no_progress_is_refused_and_stays_as_it_was();
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
    // JSON never has colours.
    let flags = ["--fail", "--format", "json", "--color", "always"];
    assert_eq!(output(&mut lab(&flags)), (captured.json, failure, 1));
}

fn errors_go_to_stderr_with_their_exit_code() {
    let (stdout, stderr, code) = output(&mut lab(&["--epochs", "-1"]));
    let expected =
        "error: invalid value '-1' for '--epochs <EPOCHS>': expected a whole number from 1 to 1000000\n";
    assert_eq!((stdout.as_str(), stderr.as_str(), code), ("", expected, 2));

    let (stdout, stderr, code) = output(&mut lab(&["--fail"]));
    assert!(
        stdout.ends_with("[picture in chapter 99 of the book: two copies, one after the other]\n"),
        "{stdout}"
    );
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
    // A flag takes precedence over the environment.
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

/// The other programs, and arguments that make each print.
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
    // An old file stays until the new one is complete, and a failed run leaves no file.
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

/// Every program escapes its arguments in its output.
fn no_argument_reaches_a_terminal_as_it_is() {
    let others = ["calibrate", "doctor", "sensitivity", "verify"].map(str::to_owned).into_iter();
    let labs = labs::LABS.iter().map(|lab| lab.name.to_owned());
    let folder = PathBuf::from(env!("CARGO_BIN_EXE_doctor")).parent().unwrap().to_owned();
    for program in others.chain(labs) {
        for flag in ["\u{1b}[2J\u{202e}", "--gpu=sim:\u{1b}[31m\u{9b}2J", "--\u{1b}]0;title\u{7}"] {
            let program = folder.join(format!("{program}{}", std::env::consts::EXE_SUFFIX));
            let (stdout, stderr, code) = output(Command::new(&program).arg(flag));
            assert!(code == 2 && stderr.starts_with("error: ") && stdout.is_empty(), "{program:?}: {stderr}");
            let obeyed = |letter: char| letter != '\n' && !drawing::printable::is_printable(letter);
            assert!(!stderr.contains(obeyed), "{program:?}: {stderr:?}");
        }
    }
}

/// A profile may have any name.
fn no_name_in_a_file_reaches_a_terminal_as_it_is() {
    let folder = Folder::new("names");
    let file = folder.0.join("a.profile");
    std::fs::write(&file, "like = t4\nname = \u{1b}[31mred\u{1b}[2J\u{202e}\n").unwrap();
    let gpu = format!("sim:{}", file.display());
    for (format, name) in
        [("text", r"\u{1b}[31mred\u{1b}[2J\u{202e}"), ("json", r"\u001b[31mred\u001b[2J\u202e")]
    {
        let (stdout, stderr, code) = output(&mut lab(&["--gpu", &gpu, "--format", format]));
        assert!(code == 0 && stderr.is_empty() && stdout.contains(name), "{stdout}{stderr}");
        assert!(!stdout.contains(['\u{1b}', '\u{202e}']), "{stdout:?}");
    }
}

/// Runs the lab with `--ask`, more flags, and this input.
fn asked(flags: &[&str], typed: &str) -> (String, String, i32) {
    typed_into(&mut lab(&[&["--ask"], flags].concat()), typed)
}

/// As `output`, with this input.
fn typed_into(command: &mut Command, typed: &str) -> (String, String, i32) {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap(); // and closes the pipe
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), status.code().unwrap())
}

const SKIPPED: &str = "\nYour score: none yet. You skipped the only prediction.\n";
const PROMPT: &str = "Your answer (a number; Enter to skip): ";

/// Without prompts and verdicts, the output is the lab's.
fn assert_nothing_else_changes(asked: &str, added: &[&str]) {
    let mut text = asked.to_owned();
    for part in added {
        assert!(text.contains(part), "no {part} in {text}");
        text = text.replacen(part, "", 1);
    }
    // A verdict has an empty line around it.
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    assert_eq!(lines(&text), lines(&labs::run_captured(&tiny::LAB, &[]).text));
}

fn a_reader_who_asks_for_it_is_asked_and_told() {
    const RIGHT: &str = "\nYour score: 1 of 1 prediction right.\n";
    const NEAR: &str = "\nYour score: 0 of 1 prediction right, 1 near (within a factor of two).\n";
    const OFF: &str = "\nYour score: 0 of 1 prediction right, 1 off.\nRead these sections of lab 99 again:\n  A2. Training\n";
    for (typed, verdict, score) in [
        ("0.25\n", "\nYou said 0.25; it was 0.2520. Right.\n", RIGHT),
        ("0.4\n", "\nYou said 0.4; it was 0.2520, so your guess was 59 % too high.\n", NEAR),
        ("0.025\n", "\nYou said 0.025; it was 0.2520, 10 times your guess.\n", OFF),
        ("1\n", "\nYou said 1; it was 0.2520, so your guess was 4 times too high.\n", OFF),
        ("0\n", "\nYou said 0; it was 0.2520.\n", OFF),
    ] {
        let (stdout, stderr, code) = asked(&[], typed);
        assert_eq!((stderr.as_str(), code), ("", 0));
        assert_nothing_else_changes(&stdout, &[PROMPT, verdict, score]);
        assert!(stdout.ends_with(score), "{stdout}");
        // The question comes before the answer, the verdict after it.
        let place = |text: &str| stdout.find(text).unwrap_or_else(|| panic!("no {text} in {stdout}"));
        assert!(place("What will the loss be") < place(PROMPT), "{stdout}");
        assert!(place(PROMPT) < place("Epoch [1/3]") && place("Epoch [3/3]") < place(verdict), "{stdout}");
    }
}

fn what_is_no_answer_is_asked_for_again_and_nothing_skips() {
    let (stdout, stderr, code) = asked(&[], "much\n1.2.3\n0.25\n");
    assert_eq!((stderr.as_str(), code), ("", 0));
    assert_eq!(stdout.matches(PROMPT).count(), 3, "{stdout}");
    for wrong in ["much", "1.2.3"] {
        let line = format!("{PROMPT}`{wrong}` is not a possible answer: type a number, 0 or more\n");
        assert!(stdout.contains(&line), "{stdout}");
    }
    assert!(stdout.contains("You said 0.25; it was 0.2520. Right.\n"), "{stdout}");

    // No input reaches the terminal raw, and the number of tries is limited: `yes | lab-99 --ask` ends.
    let endless = "\u{1b}[31m\n".repeat(1000);
    let (stdout, stderr, code) = asked(&[], &endless);
    assert_eq!((stderr.as_str(), code), ("", 0));
    assert_eq!(stdout.matches(PROMPT).count(), 3, "{stdout}");
    assert!(
        stdout.contains("`\\u{1b}[31m` is not a possible answer") && !stdout.contains('\u{1b}'),
        "{stdout}"
    );
    assert!(
        stdout.contains("Skipped after 3 invalid answers.\n") && stdout.contains("Epoch [3/3]"),
        "{stdout}"
    );
    // An endless line is not stored either.
    let (stdout, _, code) = asked(&[], &format!("{}\n0.25\n", "x".repeat(100_000)));
    assert!(code == 0 && stdout.len() < 10_000 && stdout.contains("You said 0.25"), "{}", stdout.len());

    let (stdout, stderr, code) = asked(&[], "\n0.25\n");
    assert_eq!((stderr.as_str(), code), ("", 0));
    assert_nothing_else_changes(&stdout, &[PROMPT, SKIPPED]);
}

fn nobody_is_asked_after_the_end_of_the_input() {
    for typed in ["", "much"] {
        let (stdout, stderr, code) = asked(&[], typed);
        assert_eq!((stderr.as_str(), code), ("", 0));
        assert!(!stdout.contains("You said") && stdout.contains("Epoch [3/3]"), "{stdout}");
    }
    let (stdout, _, _) = asked(&[], "");
    assert_nothing_else_changes(&stdout, &[&format!("{PROMPT}\n"), SKIPPED]);
    // An endless device is not an answer either.
    #[cfg(unix)]
    {
        let zero = std::fs::File::open("/dev/zero").unwrap();
        let (stdout, stderr, code) = output(lab(&["--ask"]).stdin(zero));
        assert_eq!((stderr.as_str(), code), ("", 0));
        assert!(!stdout.contains("You said") && stdout.contains("Epoch [3/3]"), "{stdout}");
    }
    // The last line need not end with a line break.
    assert!(asked(&[], "0.25").0.contains("You said 0.25; it was 0.2520. Right.\n"));

    // Only the first of several predictions is asked.
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab-02"));
    let (stdout, stderr, code) = output(command.args(["--gpu", "sim:t4", "--ask"]).stdin(Stdio::null()));
    assert_eq!((stderr.as_str(), code), ("", 0));
    assert_eq!(stdout.matches("Enter to skip").count(), 1, "{stdout}");
}

fn questions_stay_out_of_json() {
    let (stdout, stderr, code) = asked(&["--format", "json"], "0.25\n");
    assert_eq!(code, 0);
    for line in stdout.lines() {
        assert!(line.starts_with("{\"") && line.ends_with('}'), "{line}");
    }
    assert!(stdout.contains("\"said\":\"0.25\""), "{stdout}");
    assert!(
        stderr.contains("What will the loss be after three epochs?\n")
            && stderr.contains(PROMPT)
            && stderr.contains("Your score: 1 of 1 prediction right.\n"),
        "{stderr}"
    );
}

fn a_section_asks_its_own_questions_only() {
    let (stdout, _, code) = asked(&["--section", "1"], "0.25\n");
    assert!(code == 0 && !stdout.contains(PROMPT), "{stdout}");
    let (stdout, _, code) = asked(&["--section", "A2.loss"], "0.25\n");
    assert!(code == 0 && stdout.contains(PROMPT) && stdout.contains("You said 0.25"), "{stdout}");
}

/// A temporary folder for progress files.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("labs-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn names(&self) -> Vec<String> {
        let entries = self.0.read_dir().unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn progress_is_kept_and_what_else_was_kept_stays() {
    let folder = Folder::new("progress");
    let file = folder.0.join("mine.json");
    let path = file.to_str().unwrap();
    let kept = || std::fs::read_to_string(&file).unwrap().split_whitespace().collect::<String>();

    // Without answers, there is no progress.
    let (_, stderr, code) = asked(&["--progress", path], "\n");
    assert_eq!((stderr.as_str(), code), ("", 0));
    assert!(!file.exists() || !kept().contains("99-loss"));

    assert_eq!(asked(&["--progress", path], "1\n").2, 0);
    let first = kept();
    assert!(first.contains("\"to-device-progress\":1"), "{first}");
    assert!(first.contains("\"99-loss\":{\"ratio\":3.9") && first.contains("\"verdict\":\"off\""), "{first}");

    // A second answer replaces the first, a skipped question does not, and nothing else is lost.
    let more = "{\"to-device-progress\": 1, \"questions\": {\"02-rule\": {\"said\": \"3\", \"right\": true}}, \
                \"predictions\": {\"98-x\": {\"said\": \"a\", \"verdict\": \"right\"}, \"99-loss\": {\"said\": \"1\"}}, \"later\": [1]}";
    std::fs::write(&file, more).unwrap();
    assert_eq!(asked(&["--progress", path], "0.25\n").2, 0);
    let second = kept();
    for part in [
        "\"02-rule\":{",
        "\"98-x\":{",
        "\"later\":[1]",
        "\"99-loss\":{\"said\":\"0.25\",\"verdict\":\"right\"}",
    ] {
        assert!(second.contains(part), "{part} is missing in {second}");
    }
    assert_eq!(asked(&["--progress", path], "\n").2, 0);
    assert_eq!(kept(), second);
    assert_eq!(folder.names(), ["mine.json"], "nothing is left beside it");
}

#[cfg(unix)]
fn a_link_beside_its_file_is_followed() {
    let folder = Folder::new("linked");
    std::os::unix::fs::symlink("real.json", folder.0.join("link.json")).unwrap();
    let answered = |typed: &str| {
        let mut command = lab(&["--ask", "--progress", "link.json"]);
        typed_into(command.current_dir(&folder.0), typed)
    };
    // Without an answer, nothing is stored.
    assert_eq!(answered("\n").2, 0);
    assert_eq!(folder.names(), ["link.json"]);
    for answer in ["1\n", "0.25\n"] {
        let (_, stderr, code) = answered(answer);
        assert_eq!((stderr.as_str(), code), ("", 0));
    }
    assert_eq!(folder.names(), ["link.json", "real.json"]);
    let kept = std::fs::read_to_string(folder.0.join("real.json")).unwrap();
    assert!(kept.contains("\"0.25\""), "{kept}");
}

fn a_file_that_is_no_progress_is_refused_and_stays_as_it_was() {
    let folder = Folder::new("no-progress");
    let file = folder.0.join("thesis.json");
    for (text, what) in [
        (&b"years of work"[..], "this is not a progress file of the course"),
        (b"", "this is not a progress file of the course"),
        (b"{\"to-device-progress\": 1", "this is not a progress file of the course"),
        (b"{\"to-device-progress\": 2}", "newer"),
        (b"{\"to-device-progress\": 1, \"predictions\": [1]}", "`predictions` is not an object"),
        (b"\xff\xfe", "saved as UTF-16"),
        (b"{\xff}", "UTF-8"),
    ] {
        std::fs::write(&file, text).unwrap();
        let (stdout, stderr, code) = asked(&["--progress", file.to_str().unwrap()], "0.25\n");
        assert!(stderr.starts_with(&format!("error: --progress {}: ", file.display())), "{stderr}");
        assert!(stderr.contains(what), "{stderr}");
        assert_eq!((stdout.as_str(), stderr.lines().count(), code), ("", 1, 2), "{stderr}");
        assert_eq!(std::fs::read(&file).unwrap(), text);
    }
    // `/dev/zero` has no end.
    for nowhere in ["nowhere/mine.json", "", "/dev/zero"] {
        let nowhere = folder.0.join(nowhere);
        let (stdout, stderr, code) = asked(&["--progress", nowhere.to_str().unwrap()], "0.25\n");
        assert!(stderr.starts_with("error: --progress ") && stdout.is_empty() && code == 2, "{stderr}");
    }
    assert_eq!(folder.names(), ["thesis.json"]);
    // It only has an effect with `--ask`.
    let (stdout, stderr, code) = output(&mut lab(&["--progress", file.to_str().unwrap()]));
    assert!(stderr.starts_with("error: ") && stderr.contains("--ask"), "{stderr}");
    assert_eq!((stdout.as_str(), stderr.lines().count(), code), ("", 1, 2));
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
        // If no output is possible, there is still the exit code.
        let mut command = Command::new(program);
        let (_, _, code) = output(command.arg("--nope").stderr(full.try_clone().unwrap()));
        assert_eq!(code, 2, "{program}");
    }
}
