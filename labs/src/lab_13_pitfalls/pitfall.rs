//! What each section comes to.

use crate::Cell;

/// What a pitfall cost, and what its cure gained: a row of the last table.
pub(super) struct Pitfall {
    pub what: &'static str,
    /// What is counted.
    pub counted: &'static str,
    pub before: Cell,
    pub after: Cell,
}
