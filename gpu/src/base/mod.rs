//! The vocabulary of the crate: element types, layouts, devices, errors, and the requests to a driver, as plain data.

pub mod collective;
pub mod compiled;
pub mod conv;
pub mod device;
pub mod dtype;
pub mod error;
pub mod flags;
pub mod gemm;
pub mod kernel;
pub mod lock;
pub mod memory_format;
pub mod order;
pub mod place;
pub mod process;
pub mod pytorch_build;
pub mod random;
pub mod reading;
pub mod shape;
pub mod sort;
pub mod topology;

pub use todevice_figures::{figure, figure_file};
