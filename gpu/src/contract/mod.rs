//! All that is asked of a GPU, and notes of it.

pub mod driver;
pub mod driver_trouble;
pub mod events;
pub mod others;
pub mod races;
