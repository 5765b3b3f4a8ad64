//! Launches: from the tensors of an operation to the arguments of a kernel.

use smallvec::SmallVec;

use super::{Cuda, lock, memory_of, pointer_of};
use crate::cuda::driver::{DevicePtr, Gemm, StreamId};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::kernel::{self, Argument, Geometry, KernelDef, Launch, Parameter};
use crate::storage::{self, Source};
use crate::tensor::Tensor;
use crate::trace::EventKind;

/// Threads of a block, where nothing else is asked for.
const BLOCK: u32 = 256;

/// Threads that run in step.
const WARP: u32 = 32;

/// The most blocks of a grid; from there on each thread takes several elements.
const MOST_BLOCKS: u64 = 65_535;

/// Queues a kernel on the device of its outputs.
pub(crate) fn launch(
    kernel: &'static KernelDef,
    reads: &[&Tensor],
    writes: &[&Tensor],
    ints: &[i64],
    floats: &[f64],
) -> Result<()> {
    let target = memory_of(writes[0])?;
    let cuda = target.cuda();
    cuda.check_thread()?;
    if writes.iter().all(|write| write.numel() == 0) {
        return Ok(());
    }
    let copies = storage::sources(reads, writes)?;
    let reads = reads.iter().zip(&copies).map(|(read, source)| match source {
        Source::Copy(copy) => copy,
        Source::Itself | Source::Output => *read,
    });
    let mut tensors = reads.chain(writes.iter().copied());
    let work = kernel::work(kernel, tensors.clone());
    let (mut ints, mut floats) = (ints.iter(), floats.iter());
    let mut arguments: SmallVec<[Argument; 4]> = SmallVec::new();
    for parameter in kernel.parameters {
        arguments.push(match parameter {
            Parameter::In(dtype) | Parameter::Out(dtype) => {
                let fits = |tensor: &&Tensor| stored_alike(tensor.dtype(), *dtype);
                argument(tensors.next().filter(fits).ok_or_else(|| wrong_arguments(kernel))?)?
            }
            Parameter::Int => Argument::Int(*ints.next().ok_or_else(|| wrong_arguments(kernel))?),
            Parameter::Float => Argument::Float(*floats.next().ok_or_else(|| wrong_arguments(kernel))?),
        });
    }
    if tensors.next().is_some() || ints.next().is_some() || floats.next().is_some() {
        return Err(wrong_arguments(kernel));
    }
    let results = writes[0].numel() as u64;
    let blocks = match kernel.geometry {
        Geometry::Elements | Geometry::Indexed => results.div_ceil(u64::from(BLOCK)),
        Geometry::Rows => results,
        Geometry::LastDim => results / writes[0].sizes().last().map_or(1, |length| *length as u64).max(1),
        Geometry::Warps => results.div_ceil(u64::from(BLOCK / WARP)),
    };
    let grid = blocks.clamp(1, MOST_BLOCKS) as u32;
    let launch = Launch { kernel, grid, block: BLOCK, shared: 0, arguments, work };
    let stream = target.current_stream();
    cuda.submit(stream, EventKind::Launch { kernel }, |driver| driver.launch(stream, launch).map(Some))
}

fn wrong_arguments(kernel: &KernelDef) -> Error {
    Error::custom(format!("{} is not launched with what it takes", kernel.symbol()))
}

/// Whether kernels cannot tell two types apart: a truth is a byte.
fn stored_alike(a: DType, b: DType) -> bool {
    let stored = |dtype| if dtype == DType::Bool { DType::U8 } else { dtype };
    stored(a) == stored(b)
}

/// A tensor as a kernel takes it: where it is, or, for a number on the host, its value.
fn argument(tensor: &Tensor) -> Result<Argument> {
    match tensor.storage().device() {
        Some(memory) => {
            let offset = tensor.storage_offset() * tensor.dtype().size();
            Ok(Argument::Tensor { pointer: memory.pointer(offset), view: tensor.layout().at_start() })
        }
        None if tensor.ndim() > 0 => Err(Error::custom("a tensor of the host where one of a GPU belongs")),
        None => storage::access([tensor], [], |[input], []| {
            let mut value = [0; 8];
            let bytes = input.dense_bytes(tensor.dtype());
            value[..bytes.len()].copy_from_slice(bytes);
            Argument::Value(value)
        }),
    }
}

impl Cuda {
    /// Queues a batch of matrix products: `c = a·b`, or `c += a·b`.
    pub(crate) fn gemm(&self, a: &Tensor, b: &Tensor, c: &Tensor, gemm: Gemm) -> Result<()> {
        self.check_thread()?;
        if gemm.batch * gemm.m * gemm.n == 0 {
            return Ok(());
        }
        let stream = memory_of(c)?.current_stream();
        let workspace = self.workspace(stream)?;
        let gemm = Gemm { a: pointer_of(a)?, b: pointer_of(b)?, c: pointer_of(c)?, workspace, ..gemm };
        self.submit(stream, EventKind::Gemm { dtype: gemm.dtype }, |driver| {
            driver.gemm(stream, gemm).map(Some)
        })
    }

    /// The first product on a stream takes the memory that cuBLAS works in, through the caching allocator: it
    /// is part of what a program uses.
    fn workspace(&self, stream: StreamId) -> Result<(DevicePtr, usize)> {
        let gpu = &self.devices[stream.device];
        // cuBLAS's defaults: 32 MiB on compute capability 9.0, else two of 4 MiB and eight of 16 KiB.
        let bytes = if (gpu.properties.major, gpu.properties.minor) == (9, 0) { 32 << 20 } else { 8_519_680 };
        let taken = lock(&gpu.workspaces).iter().find(|(taken, _)| *taken == stream).map(|(_, taken)| *taken);
        let allocation = match taken {
            Some(allocation) => allocation,
            None => {
                let allocation = self.malloc(stream, bytes)?;
                lock(&gpu.workspaces).push((stream, allocation));
                allocation
            }
        };
        Ok((allocation.pointer, bytes))
    }
}
