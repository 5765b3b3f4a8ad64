//! The summary of each section.

use crate::Cell;

/// The cost of a pitfall, and the gain of its cure: a row of the last table.
pub(super) struct Pitfall {
    pub what: &'static str,
    pub counted: &'static str,
    pub before: Cell,
    pub after: Cell,
}
