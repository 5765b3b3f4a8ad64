//! A sampler that gives each of several processes or GPUs a share of the dataset.

use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};

use super::dataset::Dataset;
use super::error::DataError;
use super::sampler::{Sampler, SamplerIter, check_order_fits};
use crate::cpu::random::randperm;
use crate::error::Result;
use crate::random::Generator;

/// The keyword arguments of `DistributedSampler(...)`.
#[derive(Clone, Copy, Debug)]
pub struct DistributedSamplerOptions {
    /// Shuffles the samples, in a new order after each call of [`set_epoch`](DistributedSampler::set_epoch).
    pub shuffle: bool,
    /// The seed. It must be the same on all ranks, or their shares would overlap.
    pub seed: u64,
    /// Drops the samples that do not divide evenly. Otherwise the first ones are repeated, so that all ranks take
    /// the same number of steps.
    pub drop_last: bool,
}

impl Default for DistributedSamplerOptions {
    fn default() -> DistributedSamplerOptions {
        DistributedSamplerOptions { shuffle: true, seed: 0, drop_last: false }
    }
}

/// The samples of one rank out of `num_replicas`: every `num_replicas`-th of an order that all ranks agree on
/// without communicating (`torch.utils.data.DistributedSampler`).
///
/// ```
/// # use std::sync::Arc;
/// # use todevice::data::{DataLoader, DataLoaderOptions, DistributedSampler, DistributedSamplerOptions};
/// # use todevice::{Tensor, data::TensorDataset};
/// let dataset = TensorDataset::new([Tensor::zeros(&[10, 3])?])?;
/// let options = DistributedSamplerOptions::default();
/// let sampler = Arc::new(DistributedSampler::new(&dataset, 2, 0, options)?);
/// let options = DataLoaderOptions { batch_size: 4, sampler: Some(sampler.clone()), ..Default::default() };
/// let loader = DataLoader::new(dataset, options)?;
/// for epoch in 0..3 {
///     sampler.set_epoch(epoch); // Without it every epoch has the same order.
///     for batch in &loader {
///         batch?;
///     }
/// }
/// # Ok::<(), todevice::Error>(())
/// ```
pub struct DistributedSampler {
    /// The size of the dataset.
    n: usize,
    num_replicas: usize,
    rank: usize,
    num_samples: usize,
    options: DistributedSamplerOptions,
    epoch: AtomicU64,
}

impl DistributedSampler {
    /// Returns an error unless `rank` is in `0..num_replicas`.
    pub fn new<D: Dataset + ?Sized>(
        dataset: &D,
        num_replicas: usize,
        rank: usize,
        options: DistributedSamplerOptions,
    ) -> Result<DistributedSampler> {
        if rank >= num_replicas {
            return Err(DataError::InvalidRank { rank, last: num_replicas as i64 - 1 }.into());
        }
        let n = dataset.len();
        check_order_fits(n)?;
        let num_samples = if options.drop_last { n / num_replicas } else { n.div_ceil(num_replicas) };
        let epoch = AtomicU64::new(0);
        Ok(DistributedSampler { n, num_replicas, rank, num_samples, options, epoch })
    }

    /// Selects the order of the next epoch. Call it with the same number on all ranks.
    pub fn set_epoch(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Relaxed);
    }

    /// The order of the whole dataset, the same on every rank.
    fn order(&self) -> Vec<usize> {
        if !self.options.shuffle {
            return (0..self.n).collect();
        }
        let seed = self.options.seed.wrapping_add(self.epoch.load(Ordering::Relaxed));
        let order = randperm(&mut Generator::new().manual_seed(seed).lock(), self.n);
        order.into_iter().map(|index| index as usize).collect()
    }

    /// The position in that order of this rank's `k`-th sample. It wraps around at the end: each rank takes
    /// `num_samples` in any case.
    fn place(&self, k: usize) -> usize {
        (self.rank + k * self.num_replicas) % self.n
    }
}

impl Sampler for DistributedSampler {
    fn iter(&self) -> SamplerIter<'_> {
        let order = iter::once_with(|| self.order());
        let own = move |order: Vec<usize>| (0..self.num_samples).map(move |k| order[self.place(k)]);
        Box::new(order.flat_map(own))
    }

    fn len(&self) -> usize {
        self.num_samples
    }
}
