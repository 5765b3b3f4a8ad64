//! The child process of a program, and what ends it.

use std::io::{BufRead, BufReader, Write, stderr};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::command_line::CommandLine;
use crate::interrupt;
use crate::run::Program;

/// Deep recursion of a program in Python is a RecursionError long before this is full.
const STACK: usize = 512 << 20;

/// The exit status after Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// Runs the interpreter on a thread whose stack is large.
pub fn with_a_large_stack(run: impl FnOnce() -> u8 + Send + 'static) -> u8 {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string().replace('\n', " ");
        eprintln!("The interpreter of the course failed, not your program: {text}");
    }));
    let thread = thread::Builder::new().name("python".to_owned()).stack_size(STACK).spawn(run);
    match thread.map(thread::JoinHandle::join) {
        Ok(Ok(status)) => status,
        Ok(Err(_)) => 101,
        Err(error) => {
            eprintln!("the interpreter needs {} MiB for its stack: {error}", STACK >> 20);
            2
        }
    }
}

/// Runs this program again as a child, which may die without harm.
pub fn in_a_child(line: &CommandLine) -> u8 {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            eprintln!("torch-python cannot find itself: {error}");
            return 2;
        }
    };
    let mut command = if cfg!(unix) {
        // The shell sets the limit, and becomes the child.
        let mut shell = Command::new("sh");
        let limit = format!("ulimit -v {}; exec \"$0\" \"$@\"", line.memory << 20);
        shell.args(["-c", &limit]).arg(program);
        shell
    } else {
        Command::new(program)
    };
    command.env("RUST_BACKTRACE", "0").arg("--child").args(["--gpu", &line.gpu]);
    if let Some(trace) = &line.trace {
        command.arg("--trace").arg(trace);
    }
    match &line.program {
        Program::File(path) => _ = command.arg(path),
        Program::Text(text) => _ = command.arg("-c").arg(text),
        Program::Prompt => {}
    }
    command.args(&line.arguments).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("torch-python cannot start its interpreter: {error}");
            return 2;
        }
    };
    let errors = child.stderr.take().map(|errors| thread::spawn(move || pass_on(BufReader::new(errors))));
    let deadline = line.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    interrupt::in_parent();
    let mut stopped = None;
    // When Ctrl-C was pressed, as far as the interpreter may not have noticed.
    let (mut pressed, mut seen) = (Vec::new(), 0);
    let status = loop {
        let now = Instant::now();
        if seen < interrupt::presses() {
            seen = interrupt::presses();
            pressed.push(now);
            pressed.retain(|press| now - *press < Duration::from_secs(3));
        }
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Err(_) => break None,
            Ok(None) if deadline.is_some_and(|deadline| now >= deadline) => {
                stopped = Some((format!("after {} seconds", line.seconds.unwrap_or(0)), 124));
            }
            Ok(None) if pressed.len() >= 3 => stopped = Some(("by Ctrl-C".to_owned(), INTERRUPTED)),
            Ok(None) => thread::sleep(Duration::from_millis(5)),
        }
        if stopped.is_some() {
            let _ = child.kill();
            break child.wait().ok();
        }
    };
    let reason = errors.and_then(|errors| errors.join().ok()).flatten();
    match (stopped, status) {
        (Some((how, status)), _) => {
            eprintln!("The program was ended {how}.");
            status
        }
        (None, Some(status)) => ended(status, reason, line),
        (None, None) => 2,
    }
}

/// Copies the child's messages. Those of a crash are left out, and the reason for it is returned.
fn pass_on(mut errors: impl BufRead) -> Option<&'static str> {
    let mut reason = None;
    let mut line = Vec::new();
    while errors.read_until(b'\n', &mut line).unwrap_or(0) > 0 {
        let text = String::from_utf8_lossy(&line);
        let crash = if text.starts_with("memory allocation of ") {
            Some("it needs more memory")
        } else if text.contains("has overflowed its stack") || text.contains("stack overflow") {
            Some("it overflowed the stack")
        } else {
            None
        };
        match crash {
            None if text.starts_with("note: run with `RUST_BACKTRACE") => {}
            Some(crash) => reason = reason.or(Some(crash)),
            None => _ = stderr().write_all(&line),
        }
        line.clear();
    }
    reason
}

fn ended(status: ExitStatus, reason: Option<&'static str>, line: &CommandLine) -> u8 {
    if let Some(code) = status.code() {
        return code as u8;
    }
    match reason {
        Some("it needs more memory") => {
            eprintln!(
                "The program was ended: it needs more than {} GiB of memory (--memory sets this limit).",
                line.memory
            );
        }
        Some(reason) => eprintln!("The program was ended: {reason}."),
        None => eprintln!("The program was ended: {status}."),
    }
    134
}
