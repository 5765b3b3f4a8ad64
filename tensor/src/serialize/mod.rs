//! `torch.save` and `torch.load`: checkpoints, and the files they are kept in.

pub(crate) mod error;
mod field;
mod value;

pub(crate) use field::{count, field};
pub use value::{Dict, Key, Value};
