//! `torch.nn`: layers, losses, and the base of all modules.

mod activation;
mod conv;
mod dropout;
mod embedding;
pub(crate) mod error;
mod field;
pub(crate) mod functional_call;
mod linear;
mod loss;
mod module;
mod norm;
mod parameter;
mod pool;
mod sequential;
mod shape;
mod state_dict;
pub mod utils;

pub use crate::ops::conv::Conv2dOptions;
pub use crate::ops::loss::CrossEntropyOptions;
pub use crate::ops::pool::{AvgPool2dOptions, MaxPool2dOptions};
pub use activation::{GELU, ReLU, Sigmoid, Tanh};
pub use conv::Conv2d;
pub use dropout::Dropout;
pub use embedding::{Embedding, EmbeddingOptions};
pub use field::{ModuleField, Training};
pub use linear::{Linear, LinearOptions};
#[doc(hidden)]
pub use loss::no_target;
pub use loss::{CrossEntropyLoss, L1Loss, Loss, MSELoss, NLLLoss};
pub use module::Module;
pub use norm::{BatchNorm1d, BatchNorm2d, BatchNormOptions, LayerNorm, LayerNormOptions};
pub use parameter::{Buffer, Parameter};
pub use pool::{AdaptiveAvgPool2d, AvgPool2d, MaxPool2d};
pub use sequential::{IntoModules, Sequential};
pub use shape::Flatten;
pub use state_dict::{IncompatibleKeys, StateDict};
pub use todevice_derive::{Loss, Module};
