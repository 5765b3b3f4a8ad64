//! How one thread hands on its turn to another.

use std::io::{self, PipeReader, PipeWriter, Read, Write};

/// Where a thread waits for its turn.
///
/// It is a pipe because Linux takes a thread that writes to one to be about to wait, and runs the reader on the same core in its
/// place. A condition variable may wake its thread on another core, where a helper stays awake for the next product. The two then
/// share that core for up to 4 ms, while the first one is idle.
pub(crate) struct Turn {
    given: PipeReader,
    give: PipeWriter,
}

impl Turn {
    /// Errors if the system allows this process no more open files.
    pub(crate) fn new() -> io::Result<Turn> {
        let (given, give) = io::pipe()?;
        Ok(Turn { given, give })
    }

    /// Lets the thread go on that waits, or is about to.
    pub(crate) fn give(&self) {
        (&self.give).write_all(&[0]).expect("both ends of the pipe are open, and it is empty");
    }

    /// Waits until the turn has been given.
    pub(crate) fn wait(&self) {
        (&self.given).read_exact(&mut [0]).expect("both ends of the pipe are open");
    }
}
