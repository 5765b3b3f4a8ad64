//! The connections of the local server: their maximum number, and which one to close when there are too many.
//!
//! A client that reads gets its answer within milliseconds. A client that sends half a request, or does not read, only
//! occupies a connection. So if no connection is free, the one that has been idle longest is closed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// A connection idle for this long counts as stuck.
const PATIENCE: Duration = Duration::from_millis(50);

const PAUSE: Duration = Duration::from_millis(5);

/// The time of the last activity on a connection.
#[derive(Clone)]
pub struct Moved {
    began: Instant,
    /// In milliseconds after that.
    last: Arc<AtomicU64>,
}

impl Moved {
    pub fn now() -> Moved {
        Moved { began: Instant::now(), last: Arc::default() }
    }

    fn note(&self) {
        self.last.store(self.began.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn idle_time(&self) -> Duration {
        self.began.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }
}

#[derive(Default)]
pub struct Clients(Vec<(AbortHandle, Moved)>);

impl Clients {
    pub fn add(&mut self, task: AbortHandle, moved: Moved) {
        self.0.push((task, moved));
    }

    /// Waits until there are fewer than `most`. After at most `PATIENCE`, one of them has ended or counts as stuck.
    pub async fn make_room(&mut self, most: usize) {
        loop {
            self.0.retain(|(task, _)| !task.is_finished());
            if self.0.len() < most.max(1) {
                return;
            }
            let all = self.0.iter().enumerate().map(|(place, (_, moved))| (moved.idle_time(), place));
            match all.max().filter(|(still, _)| *still >= PATIENCE) {
                Some((_, place)) => self.0.swap_remove(place).0.abort(),
                None => sleep(PAUSE).await,
            }
        }
    }
}

pub struct Watched {
    pub stream: TcpStream,
    pub moved: Moved,
}

impl Watched {
    fn note_activity<T>(&self, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Ok(_)) = &poll {
            self.moved.note();
        }
        poll
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_read(context, into);
        self.note_activity(poll)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_activity(poll)
    }

    // Without these two methods, each connection would copy its page.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.note_activity(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
