//! `torch.save` and `torch.load`: checkpoints, and the files they are kept in.

pub(crate) mod error;
mod value;

pub use value::{Dict, Key, Value};
