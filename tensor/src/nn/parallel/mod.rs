//! `torch.nn.parallel`: one module on several GPUs of one program.
//!
//! - `scatter_gather`: a batch in parts, and its results as one.
//! - `replicate`: the same module with its tensors on other GPUs.
//! - `data_parallel`: all of it for each batch.

mod data_parallel;
mod replicate;
mod scatter_gather;

pub use data_parallel::{DataParallel, DataParallelOptions};
pub use replicate::{Replica, parallel_apply, replicate};
pub use scatter_gather::{gather, scatter};
