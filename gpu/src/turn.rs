//! How one thread hands on its turn to another.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::{Mutex, PoisonError};

/// What a thread waits at for its turn.
///
/// It is a pipe, because a system takes whoever writes to one for a thread that is about to wait, and lets the reader go on in its
/// place, on the same core. A thread that a condition variable wakes may come to another core instead, where a thread that helps
/// with products stays awake for the next one. Then both share that core for up to 4 ms, and the first has nothing to do.
pub(crate) struct Turn {
    given: Mutex<PipeReader>,
    give: PipeWriter,
}

impl Turn {
    /// Errors if the system has no more pipes for this process.
    pub(crate) fn new() -> io::Result<Turn> {
        let (given, give) = io::pipe()?;
        Ok(Turn { given: Mutex::new(given), give })
    }

    /// Lets the thread go on that waits, or is about to.
    pub(crate) fn give(&self) {
        (&self.give).write_all(&[0]).expect("a pipe whose two ends are here, and is empty");
    }

    /// Waits until it has been given.
    pub(crate) fn wait(&self) {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        (&*given).read_exact(&mut [0]).expect("a pipe whose two ends are here");
    }
}
