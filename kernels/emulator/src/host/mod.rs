//! The CUDA and C functions that host code calls, and whole programs.

pub mod calls;
#[cfg(not(target_family = "wasm"))]
pub mod device;
mod dispatch;
pub mod errors;
pub mod functions;
#[cfg(not(target_family = "wasm"))]
mod managed;
mod output;
pub mod program;
pub mod random;
pub mod streams;
