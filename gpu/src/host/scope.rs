//! Which operation of the user's program is under way, and on which line it stands.
//!
//! An operation may be made of others, and a library function of many: an optimizer's step, a batch of a
//! loader. Whatever they make or report bears the name and the line of the outermost one, which is the
//! user's own.

use std::panic::Location;

pub use crate::base::place::Place;
use crate::host::thread::{Context, OfThread, Part, Restore};

/// What is under way on a thread.
#[derive(Clone, Copy)]
pub struct Scope {
    place: Option<Place>,
    operation: Option<&'static str>,
    /// Where the tensor was made that is being printed.
    printed: Option<Place>,
    /// How many operations are under way, each part of the one before.
    depth: u32,
}

impl Scope {
    /// Nothing is under way.
    pub const NONE: Scope = Scope { place: None, operation: None, printed: None, depth: 0 };

    /// All is on behalf of this line.
    pub const fn at(place: Place) -> Scope {
        Scope { place: Some(place), ..Scope::NONE }
    }
}

/// Ends the scope.
pub type Leave = Restore<Scope>;

#[inline]
fn current() -> Scope {
    Context::read(|context| context.scope)
}

/// Names an operation until the guard is dropped, unless it is part of another one.
#[inline]
pub fn operation(name: &'static str, place: Place) -> Leave {
    Scope::enter_after(|outer| Scope {
        // Who prints is not known, and is not in here.
        place: outer.place.or(Some(place).filter(|_| outer.printed.is_none())),
        operation: outer.operation.or(Some(name)),
        depth: outer.depth + 1,
        ..*outer
    })
}

/// Says that a tensor is printed. Rust does not tell what prints (`fmt`) on which line, so there is only the one where
/// the tensor was made.
pub fn printing(made: Place) -> Leave {
    Scope::enter_after(|outer| Scope {
        operation: outer.operation.or(Some("print")),
        printed: Some(made),
        ..*outer
    })
}

/// Says that all within the guard's life stands on this line: what a library function does for its caller.
pub fn on_behalf_of(place: Place) -> Leave {
    Scope::enter_after(|outer| Scope { place: outer.place.or(Some(place)), ..*outer })
}

/// The line under way.
#[inline]
pub fn current_place() -> Option<Place> {
    current().place
}

/// Where the tensor was made that is being printed.
pub fn printed_tensor() -> Option<Place> {
    current().printed
}

/// The line under way, else the one given.
#[inline]
pub fn place_or(place: Place) -> Place {
    current_place().unwrap_or(place)
}

/// The line under way, else that of the caller.
#[track_caller]
#[inline]
pub fn here() -> Place {
    place_or(Location::caller())
}

/// Whether what is under way is part of another operation.
#[inline]
pub fn is_part() -> bool {
    current().depth > 1
}

/// The operation under way.
#[inline]
pub fn current_operation() -> Option<&'static str> {
    current().operation
}
