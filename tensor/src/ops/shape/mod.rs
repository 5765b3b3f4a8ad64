//! Views, copies, and joining tensors.
//!
//! - [`views`]: the same memory under another layout   - [`join`]: `cat`, `stack`, `split`, `chunk`
//! - [`copy`]: copying, and writing in place           - [`create`]: `zeros`, `arange`, …

pub(in crate::ops) mod copy;
pub(in crate::ops) mod create;
pub(crate) mod error;
pub(in crate::ops) mod join;
mod kernels;
pub(in crate::ops) mod views;

pub use copy::CopyOptions;
pub(crate) use copy::check_fits;
pub(crate) use create::made;
pub(in crate::ops) use kernels::ROWS;
pub(crate) use views::{UNSAFE_VIEW, viewed};
