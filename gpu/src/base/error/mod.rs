//! What can go wrong below tensors.

/// `Debug` for an error: its message. That is how `unwrap` and a `main` that returns an error print it, and a derived `Debug`
/// of all errors takes a fortieth of the code that a page fetches.
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
pub mod layout;
pub mod meeting;
mod out_of_memory;
mod race;

pub use gpu::GpuError;
pub use layout::LayoutError;
pub use meeting::MeetingError;
pub use out_of_memory::{MemoryHolder, OutOfMemory, WORKSPACE};
pub use race::{Race, RaceKind, RacingAccess, RacingOperation, RacingWorker};
