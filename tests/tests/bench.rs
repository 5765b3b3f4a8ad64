//! The benchmark as a program. Its measurements cannot be tested.

use std::process::{Command, Output};

fn bench(flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench")).args(flags).output().unwrap()
}

#[test]
fn a_wrong_flag_gets_one_line_and_exit_code_2() {
    for (wrong, right) in [
        (&["--threads", "0"][..], "from 1 to 1024"),
        (&["--rounds"], "--rounds"),
        (&["--pyhton", "python3"], "--python"),
    ] {
        let output = bench(wrong);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.starts_with("error: ") && error.contains(right), "{error}");
        assert_eq!((error.lines().count(), output.status.code()), (1, Some(2)), "{error}");
    }
}

#[test]
fn a_python_that_is_not_there_is_a_failure() {
    let output = bench(&["--python", "/nowhere/python"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("error: cannot run '/nowhere/python': "), "{error}");
    assert_eq!((error.lines().count(), output.status.code()), (1, Some(1)), "{error}");
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    for flags in [&[][..], &["--help"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_bench"))
            .args(flags)
            .stdout(writer.try_clone().unwrap())
            .output()
            .unwrap();
        assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_bench")).stdout(full).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("error: the output cannot be written: "), "{error}");
    assert_eq!((error.lines().count(), output.status.code()), (1, Some(1)));
}
