//! `torch.utils.data`: from samples to batches.
//!
//! ```
//! use todevice::data::{DataLoader, DataLoaderOptions, TensorDataset};
//! use todevice::{Result, Tensor, manual_seed};
//!
//! fn main() -> Result<()> {
//!     manual_seed(0);
//!     let x = Tensor::randn(&[1024, 16])?;
//!     let y = Tensor::randn(&[1024, 1])?;
//!     let loader = DataLoader::new(
//!         TensorDataset::new([x, y])?,
//!         DataLoaderOptions { batch_size: 64, shuffle: true, num_workers: 2, ..Default::default() },
//!     )?;
//!     assert_eq!(loader.len(), 16);
//!     for batch in &loader {
//!         let [x, y] = batch?;
//!         assert_eq!((x.sizes(), y.sizes()), (&[64, 16][..], &[64, 1][..]));
//!     }
//!     Ok(())
//! }
//! ```
//!
//! A batch takes five steps:
//!
//! 1. `sampler` (and `distributed`) chooses the *indices* of the next samples.
//! 2. `dataset` (and `split`) turns an index into a *sample*.
//! 3. `collate` combines samples into a *batch*.
//! 4. `worker` runs steps 2 and 3 on another thread, with separate random numbers.
//! 5. `loader` has the options, `iterator` returns the batches of an epoch in order, and `progress` records the
//!    position, so that another run can resume.
//!
//! Then `batch` finds a batch's tensors, for pinning, and `prefetch` copies it to a GPU while the previous one is in
//! use. [`vision`] has image datasets.
//!
//! The order of samples and all random numbers are PyTorch's for the same seed, whatever the speed of the workers.

mod batch;
mod collate;
mod dataset;
mod distributed;
pub(crate) mod error;
mod iterator;
mod loader;
mod prefetch;
mod progress;
mod sampler;
mod split;
pub mod vision;
mod worker;

#[cfg(test)]
mod tests;

pub use batch::Batch;
pub use collate::{Collate, default_collate};
pub use dataset::{BatchOf, Dataset, TensorDataset};
pub use distributed::{DistributedSampler, DistributedSamplerOptions};
pub use iterator::DataLoaderIter;
pub use loader::{DataLoader, DataLoaderOptions};
pub use prefetch::DevicePrefetcher;
pub use sampler::{
    BatchSampler, RandomSampler, RandomSamplerOptions, Sampler, SamplerIter, SequentialSampler,
    SubsetRandomSampler,
};
pub use split::{ConcatDataset, SplitLength, Subset, random_split};
pub use worker::{WorkerInfo, WorkerInitFn, get_worker_info};
