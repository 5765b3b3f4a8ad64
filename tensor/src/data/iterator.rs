//! The iterator of one epoch: batches in order, made by the caller or, ahead of time, by workers.

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
/// Dropping it before the end stops its workers: they finish only their current sample. (Persistent workers finish
/// all requested batches, and wait for the next epoch.)
///
/// A timeout is its last item, and it does not wait for its workers any longer. (In PyTorch the exception ends the
/// loop, but another call of `next` waits for the batch again. Here a `for` loop that only prints its errors would
/// then wait forever.)
pub struct DataLoaderIter<'a, B> {
    indices: Fuse<SamplerIter<'a, Vec<usize>>>,
    remaining: usize,
    maker: BatchSource<'a, B>,
    /// The loader's progress record, and the number of this epoch in it.
    progress: (&'a Progress, u64),
    /// The line that started the epoch.
    place: Place,
}

/// Who makes the batches.
pub(super) enum BatchSource<'a, B> {
    Caller {
        fetch: &'a Fetch<B>,
        pin: bool,
    },
    Workers {
        pool: WorkerPool<B>,
        /// The place where persistent workers wait for the next epoch.
        home: Option<&'a Mutex<Option<WorkerPool<B>>>>,
        /// The maximum number of outstanding batches.
        capacity: usize,
    },
    /// The epoch is over. An error that has not been returned yet is the reason why it could not start.
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

    /// Skips batches that were already returned in an earlier run.
    pub(super) fn skip_batches(&mut self, count: u64) {
        for _ in 0..count {
            let is_over = match &self.maker {
                // Skipped batches need not be made: the caller's thread keeps no random numbers of its own. Workers
                // do.
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

    /// Requests batches while there are any and there is room for them. The number of outstanding batches is
    /// bounded, so workers never run far ahead of a slow caller.
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
    /// Records that a batch was returned to the caller.
    fn hand_over(&mut self) {
        self.remaining = self.remaining.saturating_sub(1);
        self.progress.0.count(self.progress.1);
    }

    /// Releases the workers: persistent ones go back to their place unless it is taken; others stop.
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
                        // Requests the next batch before the caller starts working on this one.
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
