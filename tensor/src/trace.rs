//! Traces of the GPUs' work: [`Machine::trace`](crate::Machine::trace) and
//! [`Machine::profile`](crate::Machine::profile).

pub use crate::events::{Awaited, Call, CopyKind, Counters, EventKind, Kernel, Range, Trace, TracedWork};
pub use crate::machine::record_function;
