//! Who else uses a GPU.

use std::borrow::Cow;

/// A process that holds memory of a device (`nvmlProcessInfo_t`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) name: Cow<'static, str>,
    /// Bytes.
    pub(crate) used_memory: u64,
    /// Whether it is this program.
    pub(crate) is_this: bool,
}
