//! A line of the user's program.

use std::panic::Location;

/// A line of the user's program.
pub type Place = &'static Location<'static>;
