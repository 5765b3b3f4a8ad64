//! CUDA without tensors: memory, copies, streams, events and launches, on a simulated GPU or on a real one.
//!
//! A tour of the source, from the ground up. A file imports only from its own room and the rooms above it.
//!
//! | room | files | contents |
//! | --- | --- | --- |
//! | base | `base/` | element types, layouts (`shape.rs`), devices, errors, random numbers; the requests to a driver, as plain data: `kernel.rs`, `gemm.rs`, `conv.rs`, `collective.rs` |
//! | host | `host/` | `thread.rs`, the context of a thread; `host_context.rs`, the host that the thread has entered; `scope.rs`, the line of the program that is running; `host_profile.rs`, the speed of the modelled host |
//! | contract | `contract/` | `driver.rs`, the interface to a GPU; `libraries.rs`, the interface to the CUDA libraries; `others.rs`, collectives of several processes; `events.rs`, the record of requests and execution times; `races.rs` |
//! | runtime | `runtime/` | the layer between tensors and the driver; `allocator/`, PyTorch's caching allocator; `pinned.rs` |
//! | simulated | `simulated/` | the simulated GPU; its `mod.rs` has a tour |
//! | nvidia | `nvidia/` | the real GPU; its `mod.rs` has a tour |
//! | ranks | `ranks/` | several programs on one machine, which take turns |
//!
//! Four files here are part of the spine that `todevice`'s `lib.rs` lists: `runtime/copy.rs`, `contract/driver.rs`,
//! `simulated/schedule.rs` and `base/kernel.rs`. They follow a copy and a launch from a tensor to a GPU.
//!
//! This crate has no tensors and no operations: each kernel, matrix product and convolution brings its host
//! implementation, a `fn` (its *twin*). The crate has random number generators, but does not fill tensors.
//!
//! # Memory under PyTorch's rules
//!
//! The allocator divides segments of the driver into blocks. A freed block returns to the allocator, not to the driver.
//!
//! ```
//! use std::sync::Arc;
//!
//! use todevice_gpu::host::host_context::HostContext;
//! use todevice_gpu::host::host_profile::LAPTOP_8_CORES;
//! use todevice_gpu::runtime::Cuda;
//! use todevice_gpu::simulated::{Simulated, SimulatedOptions, profile::T4};
//! use todevice_gpu::host::time::Clock;
//!
//! let clock = Clock::default(); // virtual
//! let host = HostContext::new(clock.clone());
//! let options = SimulatedOptions { profile: &T4, host: &LAPTOP_8_CORES, count: 1, memory: None, others: 0, seed: None, setup: Default::default() };
//! let driver = Box::new(Simulated::new(options, clock.clone()));
//! let cuda = Arc::new(Cuda::new(driver, host.id(), clock, Arc::default()));
//! host.enter(|| {
//!     let figures = || {
//!         let stats = cuda.memory_stats(0);
//!         [stats.allocated_bytes, stats.reserved_bytes].map(|stat| stat.all.current)
//!     };
//!     let memory = cuda.allocate(0, 1000)?;
//!     assert_eq!(figures(), [1024, 2 << 20]); // a multiple of 512, in a segment of 2 MiB
//!     drop(memory);
//!     assert_eq!(figures(), [0, 2 << 20]);
//!     cuda.empty_cache()?;
//!     assert_eq!(figures(), [0, 0]);
//!     Ok::<(), todevice_gpu::GpuError>(())
//! })?;
//! # Ok::<(), todevice_gpu::GpuError>(())
//! ```
//!
//! # Two streams, and a race
//!
//! Only events order the work of two streams. A missing event is reported as a race, whatever the result.
//!
//! ```
//! use todevice_gpu::contract::driver::Driver;
//! use todevice_gpu::contract::libraries::Libraries; // for the race log
//! # use todevice_gpu::host::host_profile::LAPTOP_8_CORES;
//! # use todevice_gpu::simulated::{Simulated, SimulatedOptions, profile::T4};
//! # let options = SimulatedOptions { profile: &T4, host: &LAPTOP_8_CORES, count: 1, memory: None, others: 0, seed: None, setup: Default::default() };
//!
//! let gpu = Simulated::new(options, Default::default());
//! let memory = gpu.malloc(0, 4096)?;
//! let [one, two] = [gpu.stream_create(0, false)?, gpu.stream_create(0, false)?];
//! let races = || gpu.race_log().map_or(0, |log| log.races().len());
//!
//! gpu.memset(one, memory, 1, 4096)?;
//! let event = gpu.event_create(0, false)?;
//! gpu.event_record(event, one)?;
//! gpu.stream_wait_event(two, event)?;
//! gpu.memset(two, memory, 2, 4096)?; // after the first
//! gpu.synchronize(0)?;
//! assert_eq!(races(), 0);
//!
//! gpu.memset(one, memory, 3, 4096)?;
//! gpu.memset(two, memory, 4, 4096)?; // at any time
//! gpu.synchronize(0)?;
//! assert_eq!(races(), 1);
//! # Ok::<(), todevice_gpu::contract::driver::DriverError>(())
//! ```
//!
//! # A copy that overlaps
//!
//! A device has separate engines for copies and for kernels. A copy from pinned memory overlaps the work of another
//! stream, and the host waits for neither.
//!
//! ```
//! use todevice_gpu::contract::driver::{Driver, Engine, HostSource};
//! use todevice_gpu::host::time::Clock;
//! # use todevice_gpu::host::host_profile::LAPTOP_8_CORES;
//! # use todevice_gpu::simulated::{Simulated, SimulatedOptions, profile::T4};
//! # let options = SimulatedOptions { profile: &T4, host: &LAPTOP_8_CORES, count: 1, memory: None, others: 0, seed: None, setup: Default::default() };
//!
//! const BYTES: usize = 64 << 20;
//! let clock = Clock::default();
//! let gpu = Simulated::new(options, clock.clone());
//! let [computed, copied] = [gpu.malloc(0, BYTES)?, gpu.malloc(0, BYTES)?];
//! let pinned = gpu.malloc_host(BYTES)?;
//! let [one, two] = [gpu.stream_create(0, false)?, gpu.stream_create(0, false)?];
//! gpu.take_spans();
//!
//! gpu.memset(one, computed, 0, BYTES)?;
//! gpu.copy_host_to_device(two, copied, HostSource::Pinned(pinned), BYTES)?;
//! let asked = clock.now();
//! gpu.synchronize(0)?;
//! let spans = gpu.take_spans();
//! let of = |engine| spans.iter().find(|span| span.engine == engine).expect("it ran");
//! let (set, copy) = (of(Engine::Compute), of(Engine::HostToDevice));
//! assert!(copy.start < set.end && set.start < copy.end, "side by side");
//! assert!(asked < copy.end, "the host was ahead");
//! # Ok::<(), todevice_gpu::contract::driver::DriverError>(())
//! ```

#![deny(unsafe_code)]

pub mod base;
pub mod contract;
#[cfg(test)]
#[path = "../../tests/each_case.rs"]
mod each_case;
pub mod host;
#[cfg(not(target_family = "wasm"))]
pub mod nvidia;
pub mod ranks;
pub mod runtime;
pub mod simulated;

pub use base::device::{Device, DeviceType, MachineId};
pub use base::dtype::{DType, Element, Scalar};
pub use base::error::{GpuError, LayoutError};
pub use half::{bf16, f16};
