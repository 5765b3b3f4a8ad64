//! Errors of the layers below tensors.

/// Implements `Debug` for an error as its message, which is what `unwrap` and a `main` that returns an error print.
/// Derived `Debug` implementations of all errors would take a fortieth of the code that a page downloads.
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
