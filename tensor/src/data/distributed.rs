//! A sampler that gives each rank a share of the dataset.

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
    /// Whether to shuffle, in a new order after each call of [`set_epoch`](DistributedSampler::set_epoch).
    pub shuffle: bool,
    /// The seed, equal on all ranks. Otherwise their shares overlap.
    pub seed: u64,
    /// Whether to drop samples that do not divide evenly. Otherwise the first samples repeat, for equal steps.
    pub drop_last: bool,
}

impl Default for DistributedSamplerOptions {
    fn default() -> DistributedSamplerOptions {
        DistributedSamplerOptions { shuffle: true, seed: 0, drop_last: false }
    }
}

/// A rank's share: every `num_replicas`-th sample of a common order (`torch.utils.data.DistributedSampler`).
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

    /// Equal on all ranks.
    fn order(&self) -> Vec<usize> {
        if !self.options.shuffle {
            return (0..self.n).collect();
        }
        let seed = self.options.seed.wrapping_add(self.epoch.load(Ordering::Relaxed));
        let order = randperm(&mut Generator::new().manual_seed(seed).lock(), self.n);
        order.into_iter().map(|index| index as usize).collect()
    }

    /// Returns the position of the rank's `k`-th sample. It wraps around: each rank gets `num_samples`.
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
