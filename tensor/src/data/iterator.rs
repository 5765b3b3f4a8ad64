//! The iterator over the batches of one epoch, made by the caller or ahead of time by workers.

use std::iter::{self, Fuse};
use std::sync::Mutex;

use super::batch::{self, Batch};
use super::progress::{Epoch, Progress};
use super::sampler::{Sampler, SamplerIter};
use super::worker::{Fetch, WorkerPool};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::scope::{self, Place};

/// The batches of one epoch of a [`DataLoader`](super::DataLoader).
///
/// On drop, workers stop after their current sample; persistent workers finish all requested batches and wait. A
/// timeout is the last item. (In PyTorch another `next` waits again, which would block a loop that only prints errors.)
pub struct DataLoaderIter<'a, B> {
    indices: Fuse<SamplerIter<'a, Vec<usize>>>,
    remaining: usize,
    maker: BatchSource<'a, B>,
    progress: (&'a Progress, u64),
    place: Place,
}

pub(super) enum BatchSource<'a, B> {
    Caller {
        fetch: &'a Fetch<B>,
        pin: bool,
    },
    Workers {
        pool: WorkerPool<B>,
        /// The slot of idle persistent workers.
        home: Option<&'a Mutex<Option<WorkerPool<B>>>>,
        capacity: usize,
    },
    /// The epoch is over, or could not start because of an error that the next call returns.
    Nobody(Option<Error>),
}

impl<'a, B: Batch> DataLoaderIter<'a, B> {
    pub(super) fn begin(
        sampler: &'a dyn Sampler<Vec<usize>>,
        maker: BatchSource<'a, B>,
        progress: &'a Progress,
        epoch: Epoch,
        place: Place,
    ) -> DataLoaderIter<'a, B> {
        let indices = sampler.iter().fuse();
        let progress = (progress, progress.begin(epoch));
        let mut epoch = DataLoaderIter { indices, remaining: sampler.len(), maker, progress, place };
        let ready = match &mut epoch.maker {
            BatchSource::Workers { pool, .. } => pool.begin_epoch(),
            BatchSource::Caller { .. } | BatchSource::Nobody(_) => Ok(()),
        };
        if let Err(error) = ready.and_then(|()| epoch.prefetch()) {
            epoch.maker = BatchSource::Nobody(Some(error));
        }
        epoch
    }

    /// Skips batches that an earlier run has returned.
    pub(super) fn skip_batches(&mut self, count: u64) {
        for _ in 0..count {
            let is_over = match &self.maker {
                // Not made: only workers have a random state that depends on skipped batches.
                BatchSource::Caller { .. } => self.indices.next().is_none(),
                BatchSource::Workers { .. } | BatchSource::Nobody(_) => self.next().is_none(),
            };
            if is_over {
                break;
            }
            if matches!(self.maker, BatchSource::Caller { .. }) {
                self.hand_over();
            }
        }
    }

    /// Requests batches up to the capacity, so that workers do not run far ahead of a slow caller.
    fn prefetch(&mut self) -> Result<()> {
        let BatchSource::Workers { pool, capacity, .. } = &mut self.maker else { return Ok(()) };
        while pool.outstanding() < *capacity {
            let Some(indices) = self.indices.next() else { break };
            pool.send(indices)?;
        }
        Ok(())
    }
}

impl<B> DataLoaderIter<'_, B> {
    fn hand_over(&mut self) {
        self.remaining = self.remaining.saturating_sub(1);
        self.progress.0.count(self.progress.1);
    }

    /// Releases the workers. Persistent ones return to their slot if it is free; others stop.
    fn finish(&mut self) {
        self.progress.0.end(self.progress.1);
        self.indices = (Box::new(iter::empty()) as SamplerIter<'_, _>).fuse();
        if let BatchSource::Workers { pool, home: Some(home), .. } =
            std::mem::replace(&mut self.maker, BatchSource::Nobody(None))
        {
            lock(home).get_or_insert(pool);
        }
    }
}

impl<B: Batch> Iterator for DataLoaderIter<'_, B> {
    type Item = Result<B>;

    fn next(&mut self) -> Option<Result<B>> {
        let _scope = scope::on_behalf_of(self.place);
        let batch = match &mut self.maker {
            BatchSource::Caller { fetch, pin } => {
                let Some(indices) = self.indices.next() else {
                    self.progress.0.end(self.progress.1);
                    return None;
                };
                let batch = fetch(&indices);
                if *pin { batch.and_then(batch::pin) } else { batch }
            }
            BatchSource::Workers { pool, .. } => {
                if pool.outstanding() == 0 {
                    self.finish();
                    return None;
                }
                match pool.receive() {
                    Ok(batch) => {
                        if let Err(error) = self.prefetch() {
                            self.maker = BatchSource::Nobody(Some(error));
                        }
                        batch
                    }
                    Err(timeout) => {
                        self.maker = BatchSource::Nobody(None);
                        self.remaining = 0;
                        Err(timeout)
                    }
                }
            }
            BatchSource::Nobody(error) => {
                let error = error.take()?;
                self.remaining = 0;
                Err(error)
            }
        };
        self.hand_over();
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl<B: Batch> ExactSizeIterator for DataLoaderIter<'_, B> {}

impl<B: Batch> iter::FusedIterator for DataLoaderIter<'_, B> {}

impl<B> Drop for DataLoaderIter<'_, B> {
    fn drop(&mut self) {
        self.finish();
    }
}
