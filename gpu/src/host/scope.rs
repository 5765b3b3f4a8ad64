//! The user's operation that is running, and its line.
//!
//! An operation may consist of others, and a library function of many, such as an optimizer step or a loader's batch.
//! All their tensors and reports carry the name and line of the outermost one, which is the user's.

use std::panic::Location;

pub use crate::base::place::Place;
use crate::host::thread::{OfThread, Part, Restore, ThreadContext};

#[derive(Clone, Copy)]
pub struct Scope {
    place: Option<Place>,
    operation: Option<&'static str>,
    /// The line that created the tensor being printed.
    printed: Option<Place>,
    /// The number of nested operations.
    depth: u32,
}

impl Scope {
    pub const NONE: Scope = Scope { place: None, operation: None, printed: None, depth: 0 };

    /// All work is on behalf of this line.
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
pub fn operation(name: &'static str, place: impl Into<Place>) -> Leave {
    let place = place.into();
    Scope::enter_after(|outer| Scope {
        // During printing, the user's line is unknown, and `place` is in this crate.
        place: outer.place.or(Some(place).filter(|_| outer.printed.is_none())),
        operation: outer.operation.or(Some(name)),
        depth: outer.depth + 1,
        ..*outer
    })
}

/// Marks a tensor as being printed until the guard is dropped. Formatting (`fmt`) does not receive the user's line.
pub fn printing(made: Place) -> Leave {
    Scope::enter_after(|outer| Scope {
        operation: outer.operation.or(Some("print")),
        printed: Some(made),
        ..*outer
    })
}

/// Attributes all work to this line until the guard is dropped. A library function passes its caller's line.
pub fn on_behalf_of(place: impl Into<Place>) -> Leave {
    let place = place.into();
    Scope::enter_after(|outer| Scope { place: outer.place.or(Some(place)), ..*outer })
}

#[inline]
pub fn current_place() -> Option<Place> {
    current().place
}

pub fn printed_tensor() -> Option<Place> {
    current().printed
}

#[inline]
pub fn place_or(place: impl Into<Place>) -> Place {
    current_place().unwrap_or_else(|| place.into())
}

/// The current line, else the caller's.
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

#[inline]
pub fn current_operation() -> Option<&'static str> {
    current().operation
}
