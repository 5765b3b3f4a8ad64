//! Errors of the layers below tensors.

/// Implements `Debug` as the error's message. Derived implementations would take a fortieth of a page's code.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_is_message {
    ($error:ty) => {
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

pub mod gpu;
pub mod meeting;
mod out_of_memory;
mod race;

pub use crate::base::shape::LayoutError;
pub use gpu::GpuError;
pub use meeting::MeetingError;
pub use out_of_memory::{MemoryHolder, OutOfMemory, WORKSPACE};
pub use race::{Race, RaceKind, RacingAccess, RacingOperation, RacingWorker};
