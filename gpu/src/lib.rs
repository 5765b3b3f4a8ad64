//! CUDA without tensors: memory, copies, streams, events and launches, on a simulated GPU or on a real one.
//!
//! A tour of the source, from the ground up. A file imports from the rooms above its own in this table, and from its own.
//!
//! | room | what is there |
//! | --- | --- |
//! | base | `dtype.rs`, `shape.rs` (how elements lie in memory), `device.rs`, `scope.rs` (whose line of the program is under way), `error/`, `random/`, and what a driver is asked for, as plain data: `kernel.rs`, `gemm.rs`, `conv.rs` |
//! | host | `ambient.rs`, what is around a thread; `time.rs`; `host_memory.rs`; `host_profile.rs`, how long the modelled host takes |
//! | contract | `driver.rs`, all that is asked of a GPU; `races.rs` |
//! | events | `events/`, what was asked for and when it ran |
//! | runtime | `runtime.rs`, what stands between tensors and the driver; `allocator.rs`, PyTorch's caching allocator; `pinned.rs`; `current_stream.rs` |
//! | drivers | `simulated/`, with a tour of its own; `nvidia/`, likewise; neither knows the other |
//!
//! It knows no tensor and no operation, and calculates nothing: how a kernel, a product of matrices or a convolution is
//! computed on the host comes with it, as a `fn` (its *twin*).

#![deny(unsafe_code)]

pub mod allocator;
pub mod ambient;
pub mod conv;
pub mod current_stream;
pub mod device;
pub mod driver;
pub mod driver_trouble;
pub mod dtype;
pub mod error;
pub mod events;
pub mod figure;
pub mod flags;
pub mod gemm;
pub mod handles;
pub mod host_memory;
pub mod host_profile;
pub mod kernel;
pub mod lock;
pub mod named_device;
#[cfg(not(target_family = "wasm"))]
pub mod nvidia;
pub mod pinned;
pub mod process;
pub mod properties;
pub mod python;
pub mod races;
pub mod random;
pub mod reading;
pub mod runtime;
pub mod scope;
pub mod shape;
pub mod simulated;
pub mod stats;
pub mod time;

pub use device::{Device, DeviceType, MachineId};
pub use dtype::{DType, Element, Scalar};
pub use error::{GpuError, LayoutError};
pub use half::{bf16, f16};
