use std::sync::Arc;

use crate::error::{Error, Refusal};

/// An error of a dataset, a sampler or a loader.
#[derive(thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages describe the variants and name their fields.
pub enum DataError {
    #[error("Size mismatch between tensors")]
    DatasetSizes,
    #[error("index {index} is out of range for a dataset of {len} samples")]
    DatasetIndex { index: usize, len: usize },
    #[error("datasets should not be an empty iterable")]
    NoDatasets,
    #[error("Sum of input lengths does not equal the length of the input dataset!")]
    SplitLengths,
    #[error("Fraction at index {index} is not between 0 and 1")]
    SplitFraction { index: usize },
    #[error("Invalid rank {rank}, rank should be in the interval [0, {last}]")]
    InvalidRank { rank: usize, last: i64 },
    #[error("{option} should be a positive integer value, but got {option}={value}")]
    NotPositive { option: &'static str, value: usize },
    #[error("ZeroDivisionError")]
    ZeroDivision,
    #[error("{0}")]
    Options(String),
    #[error("default_collate: batch must contain at least one sample")]
    EmptyBatch,
    #[error("each element in list of batch should be of equal size")]
    CollateSizes,
    /// An error in a worker. For a panic, `kind` is "panic" and `cause` is its message.
    #[error("Caught {kind} in DataLoader worker process {worker}.\nOriginal error: {cause}")]
    Worker { worker: usize, kind: &'static str, cause: Arc<Error> },
    /// An error while pinning a worker's batch.
    #[error("Caught {kind} in pin memory thread for device {device}.\nOriginal error: {cause}")]
    PinThread { kind: &'static str, device: usize, cause: Arc<Error> },
    #[error("DataLoader worker {worker} could not be started: {reason}")]
    WorkerStart { worker: usize, reason: String },
    #[error("DataLoader timed out after {seconds} seconds")]
    Timeout { seconds: f64 },
}

todevice_gpu::debug_is_message!(DataError);

impl Refusal for DataError {
    fn kind(&self) -> &'static str {
        match self {
            DataError::DatasetIndex { .. } => "IndexError",
            DataError::SplitLengths | DataError::NotPositive { .. } | DataError::Options(_) => "ValueError",
            _ => "RuntimeError",
        }
    }
}
