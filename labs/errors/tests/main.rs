//! All tests of the table: one binary, which links once.

mod fresh;
mod lines;
mod memory;
mod pastes;
mod table;
