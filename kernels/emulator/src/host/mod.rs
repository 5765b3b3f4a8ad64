//! The CUDA and C functions that host code calls, and whole programs.

mod c_library;
pub mod calls;
mod cuda;
pub mod device;
pub mod errors;
pub mod functions;
mod memory;
mod output;
pub mod program;
pub mod random;
mod real;
pub mod streams;
mod untimed;
