//! All tests of the table: one binary, which links once.

mod memory;
mod pastes;
mod table;
