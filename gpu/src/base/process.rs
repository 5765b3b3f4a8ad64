//! Processes that use a GPU.

use std::borrow::Cow;

/// A process that holds memory of a device (`nvmlProcessInfo_t`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub name: Cow<'static, str>,
    /// Bytes.
    pub used_memory: u64,
    /// Whether it is this program.
    pub is_this: bool,
}
