//! Passing the turn from one thread to another.

use std::io::{self, PipeReader, PipeWriter, Read, Write};

/// A thread's wait for its turn.
///
/// It is a pipe because Linux expects the writer of a pipe to block soon, so the reader runs on the same core. A
/// condition variable may wake the thread on another core, where a helper thread of the last matrix product is still
/// awake. The two would share that core for up to 4 ms while the first core is idle.
pub(crate) struct Turn {
    given: PipeReader,
    give: PipeWriter,
}

impl Turn {
    /// Fails if this process may not open more files.
    pub(crate) fn new() -> io::Result<Turn> {
        let (given, give) = io::pipe()?;
        Ok(Turn { given, give })
    }

    /// Wakes the waiting thread, or lets it pass if it has not begun to wait.
    pub(crate) fn give(&self) {
        (&self.give).write_all(&[0]).expect("both ends of the pipe are open, and it is empty");
    }

    pub(crate) fn wait(&self) {
        (&self.given).read_exact(&mut [0]).expect("both ends of the pipe are open");
    }
}
