//! The WebAssembly modules of the book's pages: the labs, the check of the exercises, the final assessment, and the table
//! of errors.
//!
//! A package is [compiled](compile()) into one module, and [split](split::split()) into a base and a piece for each chapter, so that a
//! page loads the code of its own chapter and not that of all others.

mod compile;
mod graph;
mod linked;
mod progress;
pub mod split;

pub use compile::{compile, compile_whole};
pub use progress::Step;
pub use split::{Split, split};

/// A module for the pages: a package, and the table in it of what is split off.
pub struct Module {
    pub package: &'static str,
    /// A `static` array. Whatever only the functions of some entries reach becomes the piece of these entries.
    pub table: &'static str,
}

/// The labs: each has a piece.
pub const LABS: Module = Module { package: "player", table: "LABS" };

/// The check of the exercises: those of a chapter share a piece.
pub const EXERCISES: Module = Module { package: "exercises-page", table: "EXERCISES" };

/// A package that is loaded whole, and the profile that it is compiled with.
pub struct Whole {
    pub package: &'static str,
    pub profile: &'static str,
}

/// The box for error messages.
pub const ERRORS: Whole = Whole { package: "errors", profile: "errors" };

/// The emulator of CUDA C++.
pub const KERNELS: Whole = Whole { package: "lab-12", profile: "lab-12" };

/// The final assessment. It shares a profile with the exercises, and with that everything that both are made of.
pub const ASSESSMENT: Whole = Whole { package: "assessment-page", profile: "exercises-page" };

/// The piece of an exercise, by its id. `exercise.js` says the same.
pub fn piece_of_exercise(id: &str) -> String {
    let chapter = id.split('-').next().unwrap_or(id);
    format!("chapter-{chapter}")
}
