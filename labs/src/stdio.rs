//! Standard output and standard error, which may be closed or full: `print!` would panic.

use std::io::{self, ErrorKind, Write};

/// Writes to stdout, and ends the program if nobody can read any more.
pub fn to_stdout(text: &str) {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => {}
        // `lab-03 | head -1` has all it wants: no reason to go on, nor to complain.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            to_stderr(&format!("error: the output cannot be written: {error}\n"));
            std::process::exit(1);
        }
    }
}

/// Writes to stderr if it can.
pub fn to_stderr(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
