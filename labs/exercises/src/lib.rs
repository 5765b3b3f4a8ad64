//! The exercises of the To Device course, and the check that observes a student's code.
//!
//! All of an exercise is in one file of `labs/exercises/source`: its task, its hints, its solution, common mistakes,
//! its check, and in `AFTER` the exercise before it, unless it is the first of its chapter. The check calls the student's functions on simulated machines and observes what they ask for: copies,
//! bytes, launches, waits, races, memory, and results. It ignores everything that the code prints or claims.
//! ```
//! use exercises::{Exercise, Verdict};
//!
//! let exercise = Exercise::find("02-batch").unwrap();
//! let cases = exercise.cases(&[1]);
//! let right = exercise.right(&cases);
//! assert!(exercise.judge(&cases, &right, &right).passed());
//! ```
//!
//! A student's file is compiled against this package's existing build, with one call of `rustc`
//! ([`check`](check::check)), and runs in a separate process ([`child`]).

// A check ends with its first diagnosis, so the size of the error does not matter.
#![allow(clippy::result_large_err)]

#[path = "../final/mod.rs"]
pub mod assessment;
mod case;
#[cfg(not(target_family = "wasm"))]
pub mod check;
#[cfg(not(target_family = "wasm"))]
mod child;
mod choices;
#[cfg(not(target_family = "wasm"))]
pub mod compile_error;
#[cfg(not(target_family = "wasm"))]
mod confined;
mod exercise;
#[cfg(not(target_family = "wasm"))]
pub mod file;
#[cfg(not(target_family = "wasm"))]
pub mod from_python;
mod here;
#[cfg(not(target_family = "wasm"))]
pub mod library;
#[cfg(not(target_family = "wasm"))]
pub mod own;
#[cfg(not(target_family = "wasm"))]
mod own_folder;
pub mod pieces;
#[cfg(not(target_family = "wasm"))]
mod process;
#[cfg(not(target_family = "wasm"))]
pub mod rules;
mod seen;
pub mod shown;
mod student;
mod verdict;

pub use case::Case;
#[cfg(not(target_family = "wasm"))]
pub use child::{Variant, child};
pub use choices::{Choices, Piece, number};
#[cfg(not(target_family = "wasm"))]
pub use confined::is_available as can_confine;
pub use drawing::printable::{self, lines as plain};
pub use exercise::{Edit, Exercise, Judge, Kind, Observe, Place, SEEDS, Style, Wrong};
pub use here::{CheckedHere, check_here};
#[cfg(not(target_family = "wasm"))]
pub use own_folder::OwnFolder;
pub use seen::{Call, CallKind, Ended, Form, IntoValue, Operand, Race, Seen, Value, observe, with_axis};
/// The crate that the exercises are about, as this package was built with it.
pub use todevice;
pub use verdict::{Diagnosis, Verdict, wrapped};

/// Declares the modules of the exercises, and lists them in book order.
macro_rules! exercises {
    ($($module:ident = $file:literal,)+) => {
        $(
            #[path = $file]
            pub mod $module;
        )+

        /// All exercises, in book order.
        pub static EXERCISES: &[&Exercise] = &[$(&$module::EXERCISE),+];
    };
}

// The build script lists the files of `source`, as the macro `files`.
include!(concat!(env!("OUT_DIR"), "/files.rs"));
files!(exercises);

impl Exercise {
    /// The exercise with this id.
    pub fn find(id: &str) -> Option<&'static Exercise> {
        EXERCISES.iter().copied().find(|exercise| exercise.id == id)
    }
}
