//! What can go wrong below tensors.

pub mod gpu;
pub mod layout;
pub mod meeting;
mod out_of_memory;
mod race;

pub use gpu::GpuError;
pub use layout::LayoutError;
pub use meeting::MeetingError;
pub use out_of_memory::{MemoryHolder, OutOfMemory, WORKSPACE};
pub use race::{Race, RaceKind, RacingAccess, RacingOperation, RacingWorker};
