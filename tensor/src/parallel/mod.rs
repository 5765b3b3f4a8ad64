//! One model on several GPUs.
//!
//! [`DataParallel`] runs one program that gives each GPU a part of every batch (`torch.nn.parallel`). [`distributed`]
//! runs one program per GPU and has [`DistributedDataParallel`], which is faster (`torch.distributed`).
//!
//! - `scatter_gather`: splitting a batch, and joining the results.
//! - `replicate`: copies of a module's tensors on other GPUs.
//! - `data_parallel`: the above combined, for each batch.
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
