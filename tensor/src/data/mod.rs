//! From samples to batches: `torch.utils.data`.
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
//! A batch is made in five steps, one file each:
//!
//! 1. `sampler` (and `distributed`) chooses the next samples: *indices*, just numbers.
//! 2. `dataset` (and `split`) turns an index into a *sample*.
//! 3. `collate` combines several samples into a *batch*.
//! 4. `worker` does steps 2 and 3 on another thread, with its own random numbers.
//! 5. `loader` holds the options; `iterator` runs one epoch and returns the batches in order; `progress` records
//!    how far it has come, so that another run can resume.
//!
//! [`vision`] provides image datasets.
//!
//! Two more files bring a batch to a GPU: `batch` finds its tensors, for pinning; `prefetch` copies it while the
//! previous batch is in use.
//!
//! The order of the samples, and every random number drawn on the way, is the same as PyTorch's for the same seed.
//! It never depends on the relative speed of the workers.

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
