//! Processes that use a GPU.

use std::borrow::Cow;

/// A process that holds memory of a device (`nvmlProcessInfo_t`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub name: Cow<'static, str>,
    /// In bytes.
    pub used_memory: u64,
    pub is_this: bool,
}
