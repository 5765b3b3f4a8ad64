//! Requests to a GPU, and the record of them.

pub mod driver;
pub mod driver_trouble;
pub mod events;
pub mod interpreter;
pub mod libraries;
pub mod others;
pub mod races;
