//! One model on several GPUs.
//!
//! [`DataParallel`] runs one program that splits each batch (`torch.nn.parallel`). [`distributed`] runs one program per
//! GPU, which is faster ([`DistributedDataParallel`], `torch.distributed`).
//!
//! - `scatter_gather`: splits a batch and joins results.
//! - `replicate`: copies a module's tensors to other GPUs.
//! - `data_parallel`: combines the two.
//! - `distributed`: ranks.

mod data_parallel;
pub mod distributed;
pub(crate) mod error;
mod replicate;
mod scatter_gather;

pub use data_parallel::{DataParallel, DataParallelOptions};
pub use distributed::{DistributedDataParallel, DistributedDataParallelOptions};
pub use replicate::{Replica, parallel_apply, replicate};
pub use scatter_gather::{gather, scatter};
