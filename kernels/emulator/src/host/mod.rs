//! The functions of CUDA and C that host code calls, and programs as a whole.

pub mod calls;
mod dispatch;
pub mod errors;
pub mod functions;
mod output;
pub mod program;
pub mod random;
pub mod streams;
