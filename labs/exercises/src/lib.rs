//! The exercises of the To Device course, and the check that observes a student's code.
//!
//! All of an exercise is in one file of `labs/exercises/source`: its task, its hints, its solution, common mistakes,
//! and its check. The check calls the student's functions on simulated machines and observes what they ask for: copies,
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

exercises! {
    x01_one_by_one = "../source/01-one-by-one.rs",
    x01_portable = "../source/01-portable.rs",
    x01_moved = "../source/01-moved.rs",
    x02_batch = "../source/02-batch.rs",
    x02_mask = "../source/02-mask.rs",
    x03_loop = "../source/03-loop.rs",
    x03_item = "../source/03-item.rs",
    x03_optimizer = "../source/03-optimizer.rs",
    x03_accuracy = "../source/03-accuracy.rs",
    x03_bytes = "../source/03-bytes.rs",
    x04_no_grad = "../source/04-no-grad.rs",
    x04_accumulate = "../source/04-accumulate.rs",
    x04_graph = "../source/04-graph.rs",
    x04_dies = "../source/04-dies.rs",
    x04_largest = "../source/04-largest.rs",
    x05_reading = "../source/05-reading.rs",
    x05_fits = "../source/05-fits.rs",
    x06_scaler = "../source/06-scaler.rs",
    x06_autocast = "../source/06-autocast.rs",
    x06_small = "../source/06-small.rs",
    x07_shapes = "../source/07-shapes.rs",
    x07_same = "../source/07-same.rs",
    x07_tf32 = "../source/07-tf32.rs",
    x08_stream = "../source/08-stream.rs",
    x08_clock = "../source/08-clock.rs",
    x08_line = "../source/08-line.rs",
    x08_waits = "../source/08-waits.rs",
    x09_pinned = "../source/09-pinned.rs",
    x09_prefetch = "../source/09-prefetch.rs",
    x09_files = "../source/09-files.rs",
    x10_share = "../source/10-share.rs",
    x10_epochs = "../source/10-epochs.rs",
    x10_average = "../source/10-average.rs",
    x10_everyone = "../source/10-everyone.rs",
    x10_by_hand = "../source/10-by-hand.rs",
    x11_map = "../source/11-map.rs",
    x11_optimizer = "../source/11-optimizer.rs",
    x11_strict = "../source/11-strict.rs",
    x11_resume = "../source/11-resume.rs",
    // Setup is an appendix, at the end of the book.
    x00_versions = "../source/00-versions.rs",
}

impl Exercise {
    /// The exercise with this id.
    pub fn find(id: &str) -> Option<&'static Exercise> {
        EXERCISES.iter().copied().find(|exercise| exercise.id == id)
    }
}
