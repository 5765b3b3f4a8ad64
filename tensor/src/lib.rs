//! `.to(device)`: a PyTorch-shaped tensor crate, small enough to read.
//!
//! ```
//! use todevice::prelude::*;
//!
//! fn main() -> Result<()> {
//!     manual_seed(0);
//!     let x = Tensor::randn(&[2, 3])?;
//!     let w = Tensor::randn(&[3, 1])?.requires_grad_(true)?;
//!     let loss = (x.matmul(&w)? - 1.0)?.square()?.mean()?;
//!     loss.backward()?;
//!     println!("{loss} {}", w.grad().unwrap());
//!     Ok(())
//! }
//! ```
//!
//! Code for a GPU. Every computer has one, because the GPU can be simulated:
//!
//! ```
//! use todevice::prelude::*;
//!
//! fn main() -> Result<()> {
//!     let machine: Machine = "sim:t4".parse()?;
//!     machine.enter(|| {
//!         let device = Device::cuda_if_available();
//!         let x = Tensor::randn(&[2, 3])?.to(device)?;
//!         println!("{}", x.matmul(&x.t()?)?);
//!         Ok(())
//!     })
//! }
//! ```
//!
//! Names are PyTorch's. Calls differ as follows:
//!
//! | in Python | here |
//! | --- | --- |
//! | `torch.zeros(2, 3)` | `Tensor::zeros(&[2, 3])?` |
//! | `torch.zeros(2, 3, device=device)` | `Tensor::zeros((&[2, 3], device))?`: the last argument is paired with options ([`AndOptions`]) |
//! | `nn.Linear(16, 64, bias=False)` | `nn::Linear::new(16, (64, nn::LinearOptions { bias: false, ..Default::default() }))?` |
//! | `nn.Conv2d(1, 8, 3, padding=1)` | `nn::Conv2d::new(1, 8, (3, nn::Conv2dOptions { padding: 1.into(), ..Default::default() }))?` |
//! | `class Net(nn.Module):` | `#[derive(Module)] struct Net { … }` with a `forward` method ([`nn::Module`]) |
//! | `loss_fn(model(x), y)` | `loss_fn.forward(&model.forward(&x)?, &y)?` |
//! | `for x, y in loader:` | `for batch in &loader { let [x, y] = batch?; … }` |
//! | `x = x.to(device)`, `model.to(device)` | `let x = x.to(device)?;`, `model.to(device)?;` |
//! | `with torch.no_grad():` | `no_grad(\|\| …)?` |
//! | `x + y`, `x + 1` | `(&x + &y)?`, `(&x + 1.0)?` |
//! | `x.flatten(1)`, `x.argmax(1)` | `x.flatten(1, -1)?`, `x.argmax(1, false)?`: optional arguments are written out if there are only one or two |
//! | `loss.backward(retain_graph=True)` | [`autograd::backward`]`(&loss, BackwardOptions { retain_graph: true, ..Default::default() })?` |
//!
//! # The spine
//!
//! Fourteen files follow `x.to(device)`, `y = relu(x @ w)` and `loss.backward()` from the call to the driver and back.
//! Read them in this order; each states its topic, its limits and the next file. The book's page "The source, read"
//! walks through them. A test limits their length and their imports.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `tensor/src/tensor.rs` | `Tensor`: storage, layout, dtype, history |
//! | `tensor/src/ops/transfer.rs` | `x.to(device)` |
//! | `gpu/src/runtime/copy.rs` | queues the copy on the current stream |
//! | `gpu/src/contract/driver.rs` | the interface to a GPU |
//! | `gpu/src/simulated/schedule.rs` | schedules copies and kernels |
//! | `tensor/src/ops/mod.rs` | the three entry points of an operation |
//! | `tensor/src/operation.rs` | an operation's properties, and the golden rule |
//! | `tensor/src/ops/elementwise/unary.rs` | `relu`, forward and backward |
//! | `gpu/src/base/kernel.rs` | a kernel and its twin |
//! | `tensor/src/ops/launch.rs` | grid, work and arguments of a launch |
//! | `tensor/src/autograd/function.rs` | records an operation |
//! | `tensor/src/autograd/graph.rs` | nodes, edges and leaves |
//! | `tensor/src/autograd/saved.rs` | saved tensors and their lifetime |
//! | `tensor/src/autograd/engine.rs` | `loss.backward()` |
//!
//! # A tour of the source
//!
//! | topic | read |
//! | --- | --- |
//! | tensors | [`Tensor`]; `storage.rs` for the memory; `shape.rs` of `todevice-gpu` for views |
//! | operations | `operation.rs`, with their only entry; `ops/mod.rs`; then `ops/elementwise/unary.rs` |
//! | kernels for the CPU and GPUs | `ops/row.rs` declares them; `ops/launch.rs`, `ops/access.rs` run them |
//! | gradients | [`autograd`]: `function.rs`, `graph.rs`, `engine.rs` |
//! | layers, optimizers, data | [`nn`], [`optim`], [`data`] |
//! | checkpoints of a training | [`serialize`] |
//! | convolutions | `cpu/conv/mod.rs` on the CPU, `cpu/conv/ways/mod.rs` on a simulated GPU; [`backends`] chooses |
//! | the CPU's computations on slices | `cpu/mod.rs` |
//! | training in 16 bits | [`amp`]; `cpu/half.rs` |
//! | the machine of a program | [`Machine`], [`time`] |
//! | the context of a thread: device, stream, modes | `thread.rs` |
//! | copies to and from a GPU | `ops/transfer.rs`; [`cuda`] is `torch.cuda` |
//! | the memory map of a GPU | [`cuda::memory_snapshot`] |
//! | kernels of the user | [`cuda::compile_kernel`], `ops/compiled/` |
//! | the timeline of a GPU | [`trace`]; [`Machine::profile`] and [`trace::record_function`] |
//! | the load and memory use of a GPU | [`monitor`] |
//! | training on several GPUs | [`parallel`] with one program; [`distributed`] with one program per GPU |
//! | errors | `error.rs`; each family is beside its operations, such as `ops/conv/error.rs` |
//!
//! This crate draws nothing: the `drawing` crate turns traces into timelines and memory snapshots into maps.
//!
//! Kernels, the caching allocator, streams, the driver, and the simulated and real GPUs are in `todevice-gpu`, which has
//! a tour in its `lib.rs`.
//!
//! The rooms, from the ground up. A file imports only from its room and the rooms above it in this table.
//!
//! | room | files |
//! | --- | --- |
//! | errors | `error.rs`, `error/`, `python.rs` |
//! | cpu | `cpu/` |
//! | machine | `thread.rs`, `machine/`, `gpu/`, `backends/`, `monitor/` |
//! | tensor | `tensor.rs`, `tensor_options.rs`, `storage.rs`, `print.rs`, `operation.rs`, `mismatch.rs`, `options.rs`, `autograd/` |
//! | ops | `ops/`, `amp/autocast.rs` |
//! | engine | `autograd/checkpoint.rs`, `autograd/engine.rs`, `autograd/gradcheck.rs`, `autograd/mod.rs` |
//! | serialize | `serialize/` |
//! | nn | `nn/` |
//! | optim | `optim/` |
//! | amp | `amp/` |
//! | data | `data/` |
//! | parallel | `parallel/` |
//! | PyTorch's names | `cuda.rs`, `rng_state.rs`, `trace.rs`, `interpreter.rs`, `prelude.rs` |
//!
//! Every fallible call returns [`Result`], operators included. Error messages follow PyTorch's.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub use todevice_gpu::base::random;
pub(crate) use todevice_gpu::base::{
    collective, conv, device, dtype, figure_file, flags, kernel, lock, place, reading, shape, sort, topology,
};
pub(crate) use todevice_gpu::contract::{events, libraries, others, races};
pub use todevice_gpu::host::time;
pub(crate) use todevice_gpu::host::{host_context, host_memory, host_profile, scope};
pub(crate) use todevice_gpu::ranks;

pub mod amp;
pub mod autograd;
pub mod backends;
mod cpu;
pub mod cuda;
pub mod data;
#[cfg(test)]
#[path = "../../tests/each_case.rs"]
mod each_case;
mod error;
mod gpu;
pub mod interpreter;
mod machine;
mod mismatch;
pub mod monitor;
pub mod nn;
mod operation;
mod ops;
pub mod optim;
mod options;
pub mod parallel;
pub mod prelude;
mod print;
mod python;
mod rng_state;
pub mod serialize;
mod storage;
mod tensor;
mod tensor_options;
mod thread;
pub mod trace;

/// The error families, one per kind of operation. [`Error::refusal`] tests for one of them.
pub mod errors {
    pub use crate::amp::error::ScalerError;
    pub use crate::autograd::error::AutogradError;
    pub use crate::autograd::gradcheck::GradcheckError;
    pub use crate::data::error::DataError;
    pub use crate::error::distributed::DistributedError;
    pub use crate::error::{DTypeError, Refusal, TensorError};
    pub use crate::machine::error::MachineError;
    pub use crate::nn::error::ModuleError;
    pub use crate::ops::compiled::error::KernelError;
    pub use crate::ops::conv::error::ConvError;
    pub use crate::ops::elementwise::error::ElementwiseError;
    pub use crate::ops::index::error::IndexError;
    pub use crate::ops::loss::error::LossError;
    pub use crate::ops::matmul::error::MatmulError;
    pub use crate::ops::norm::error::NormError;
    pub use crate::ops::pool::error::PoolError;
    pub use crate::ops::random::error::RandomError;
    pub use crate::ops::reduce::error::ReduceError;
    pub use crate::ops::shape::error::ShapeError;
    pub use crate::optim::error::OptimError;
    pub use crate::parallel::error::ParallelError;
    pub use crate::serialize::error::SerializeError;
}

/// `torch.func`: modules as functions of their parameters.
pub mod func {
    pub use crate::nn::functional_call::functional_call;
}

/// The hardware figures behind simulated machines.
pub mod profiles {
    pub use crate::figure_file::{FigureSet, figures};
    pub use crate::gpu::simulated::profile::{ALL, PROFILES, Profile};
    pub use crate::host_profile::{HOSTS, HostProfile};
    pub use todevice_gpu::base::figure::{Figure, Status, Unit};
}

pub use parallel::distributed;

pub use autograd::{enable_grad, inference_mode, is_grad_enabled, no_grad};
pub use backends::{
    Float32MatmulPrecision, are_deterministic_algorithms_enabled, get_float32_matmul_precision,
    set_float32_matmul_precision, use_deterministic_algorithms,
};
pub use device::{Device, DeviceType, MachineId};
pub use dtype::{DType, Element, Scalar};
pub use error::{
    DeviceMismatch, Error, Forgetful, GpuError, HalfDone, LayoutError, MismatchedTensor, OutOfMemory, Race,
    RaceKind, RacingAccess, RacingOperation, RacingWorker, RankError, Result, Unlisted,
};
pub use half::{bf16, f16};
pub use host_memory::HostMemory;
pub use machine::{GpuSpec, Machine, SimulatedGpus, manual_seed, parse_seed};
pub use ops::conv::{Conv2dOptions, Padding};
pub use ops::elementwise::{Approximate, Bound, Operand};
pub use ops::loss::{CrossEntropyOptions, Reduction};
pub use ops::norm::{BatchNormArguments, LayerNormArguments};
pub use ops::pair::Pair;
pub use ops::pool::{AvgPool2dOptions, MaxPool2dOptions};
pub use ops::random::RandomOptions;
pub use ops::shape::CopyOptions;
pub use ops::transfer::ToOptions;
pub use ops::values::NestedData;
pub use options::AndOptions;
pub use place::{Place, ScriptLine};
pub use races::RaceCheck;
pub use random::Generator;
pub use rng_state::{get_rng_state, set_rng_state};
pub use shape::MAX_DIMS;
pub use tensor::Tensor;
pub use tensor_options::TensorOptions;
