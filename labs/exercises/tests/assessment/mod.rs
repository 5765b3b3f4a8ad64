//! The final assessment: every fault at every place, and what programs of many students earn.

mod draws;
mod matrix;
mod pace;
mod styles;
mod variants;
