//! Passing the turn from one thread to another.

use std::io::{self, PipeReader, PipeWriter, Read, Write};

/// Where a thread waits for its turn.
///
/// It is a pipe and not a condition variable because of how Linux places a woken thread. Linux expects the writer of a
/// pipe to block soon, and so runs the reader on the same core. A condition variable may wake the thread on another
/// core, where a helper thread of the last matrix product is still awake in case another product follows. The two would
/// then share that core for up to 4 ms while the first core is idle.
pub(crate) struct Turn {
    given: PipeReader,
    give: PipeWriter,
}

impl Turn {
    /// Errors if this process may not open any more files.
    pub(crate) fn new() -> io::Result<Turn> {
        let (given, give) = io::pipe()?;
        Ok(Turn { given, give })
    }

    /// Wakes the thread that waits for its turn, or lets it pass if it has not begun to wait.
    pub(crate) fn give(&self) {
        (&self.give).write_all(&[0]).expect("both ends of the pipe are open, and it is empty");
    }

    /// Waits until the turn has been given.
    pub(crate) fn wait(&self) {
        (&self.given).read_exact(&mut [0]).expect("both ends of the pipe are open");
    }
}
