//! The checks are checked: with the solutions, the skeletons and what others get wrong.

mod matrix;
mod trust;
