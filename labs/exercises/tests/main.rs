//! The checks are checked: with the solutions, the skeletons and what others get wrong.

mod generated;
mod matrix;
mod trust;
