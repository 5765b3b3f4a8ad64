//! The names of a typical training program: `use todevice::prelude::*;`

pub use crate::data::{DataLoader, DataLoaderOptions, Dataset, TensorDataset};
pub use crate::nn::{self, Loss, Module};
pub use crate::optim::{self, AdamOptions, AdamWOptions, Optimizer, SGDOptions};
pub use crate::{
    CrossEntropyOptions, DType, Device, Error, Generator, Machine, Reduction, Result, Tensor, ToOptions,
    cuda, inference_mode, manual_seed, no_grad, use_deterministic_algorithms,
};
