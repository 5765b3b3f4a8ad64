//! One model on several GPUs.
//!
//! [`DataParallel`] is one program that gives each GPU a part of every batch (`torch.nn.parallel`). [`distributed`] is a program
//! for each GPU, and [`DistributedDataParallel`], which is faster (`torch.distributed`).
//!
//! - `scatter_gather`: a batch in parts, and its results as one.
//! - `replicate`: the same module with its tensors on other GPUs.
//! - `data_parallel`: all of it for each batch.
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
