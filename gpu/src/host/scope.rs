//! The operation of the user's program that is running, and its line.
//!
//! An operation may consist of others, and a library function of many: an optimizer step, a batch of a loader.
//! Everything that they create or report carries the name and the line of the outermost one, which is the user's own.

use std::panic::Location;

pub use crate::base::place::Place;
use crate::host::thread::{OfThread, Part, Restore, ThreadContext};

/// The current operation of a thread.
#[derive(Clone, Copy)]
pub struct Scope {
    place: Option<Place>,
    operation: Option<&'static str>,
    /// Where the tensor that is being printed was created.
    printed: Option<Place>,
    /// The number of nested operations that are running.
    depth: u32,
}

impl Scope {
    /// No operation is running.
    pub const NONE: Scope = Scope { place: None, operation: None, printed: None, depth: 0 };

    /// Everything runs on behalf of this line.
    pub const fn at(place: Place) -> Scope {
        Scope { place: Some(place), ..Scope::NONE }
    }
}

/// Ends the scope when dropped.
pub type Leave = Restore<Scope>;

#[inline]
fn current() -> Scope {
    ThreadContext::read(|context| context.scope)
}

/// Names an operation until the guard is dropped, unless it is part of another one.
#[inline]
pub fn operation(name: &'static str, place: Place) -> Leave {
    Scope::enter_after(|outer| Scope {
        // The line that prints is unknown, and it is not in this crate.
        place: outer.place.or(Some(place).filter(|_| outer.printed.is_none())),
        operation: outer.operation.or(Some(name)),
        depth: outer.depth + 1,
        ..*outer
    })
}

/// Marks a tensor as being printed until the guard is dropped. Formatting (`fmt`) does not tell the line that prints,
/// so only the line that created the tensor is known.
pub fn printing(made: Place) -> Leave {
    Scope::enter_after(|outer| Scope {
        operation: outer.operation.or(Some("print")),
        printed: Some(made),
        ..*outer
    })
}

/// Attributes everything within the guard's lifetime to this line: for the work of a library function on behalf of its
/// caller.
pub fn on_behalf_of(place: Place) -> Leave {
    Scope::enter_after(|outer| Scope { place: outer.place.or(Some(place)), ..*outer })
}

/// The current line of the program.
#[inline]
pub fn current_place() -> Option<Place> {
    current().place
}

/// Where the tensor that is being printed was created.
pub fn printed_tensor() -> Option<Place> {
    current().printed
}

/// The current line, or else the given one.
#[inline]
pub fn place_or(place: Place) -> Place {
    current_place().unwrap_or(place)
}

/// The current line, or else that of the caller.
#[track_caller]
#[inline]
pub fn here() -> Place {
    place_or(Location::caller())
}

/// Whether the current operation is part of another one.
#[inline]
pub fn is_part() -> bool {
    current().depth > 1
}

/// The current operation.
#[inline]
pub fn current_operation() -> Option<&'static str> {
    current().operation
}
