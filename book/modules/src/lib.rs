//! The WebAssembly modules of the book's pages: the labs, and the check of the exercises.
//!
//! A package is [compiled](compile()) into one module, and [split](split::split()) into what every lab takes and a piece for each of
//! them, so that a page loads the code of its own lab and not that of all others.

mod compile;
mod graph;
mod linked;
pub mod split;

pub use compile::compile;
pub use split::{Split, split};

/// A module for the pages: a package, and the table in it of what is split off.
pub struct Module {
    pub package: &'static str,
    /// A `static` array. Whatever only the functions of one of its entries reach becomes a piece.
    pub table: &'static str,
}

/// The labs. Their pieces have the names of `labs::LABS`.
pub const LABS: Module = Module { package: "player", table: "LABS" };

/// The check of the exercises. Its pieces have the ids of `exercises_page::EXERCISES`.
pub const EXERCISES: Module = Module { package: "exercises-page", table: "EXERCISES" };
