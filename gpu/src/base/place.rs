//! A line of the user's program.

use std::panic::Location;

pub type Place = &'static Location<'static>;
