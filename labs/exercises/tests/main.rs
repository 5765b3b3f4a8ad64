//! The checks are checked: with the solutions, the skeletons and what others get wrong.

mod assessment;
mod from_python;
mod generated;
mod lexing;
mod matrix;
mod older;
mod trust;
