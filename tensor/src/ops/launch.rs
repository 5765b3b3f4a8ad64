//! Launches: turns an operation's tensors into a kernel's arguments, and runs the kernel on their device.
//!
//! On a GPU a launch has a grid and a [`KernelWork`]. The grid follows from the kernel's geometry and the size of the first
//! output: one thread per element, in blocks of 256; one warp or block per result; or one block per row; and at most
//! 65,535 blocks. The work is the number of distinct bytes that the tensors occupy, and the FLOPs: the cost of an
//! element times the number of elements of the largest tensor. A simulated GPU turns both into a modelled time
//! (`simulated/cost.rs`): the bytes at the memory's rate or the FLOPs at the processors' rate, whichever takes longer,
//! divided by the share of the processors that the grid fills. No kernel is shorter than an empty one; the host's time
//! for the launch comes on top. An NVIDIA GPU ignores the work.
//!
//! Not here: the host's access to tensors' memory, in `access.rs`. Next in the spine: `autograd/function.rs`.

use std::iter;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host_context::HostContext;
use crate::kernel::{
    Args, Argument, Cost, Geometry, Input, KernelDef, KernelParameter, KernelWork, Launch, Output,
};
use crate::ops::access::{InputSource, access, access_all, sources};
use crate::shape::{Dims, Layout};
use crate::tensor::{Tensor, memory_of};

/// Runs a kernel on the device of its tensors.
///
/// `reads` and `writes` are the `In` and `Out` parameters. The first output may also be read, if both use the same
/// view; any other overlapping input is copied first.
pub(crate) fn launch<const R: usize, const W: usize>(
    kernel: &'static KernelDef,
    reads: [&Tensor; R],
    writes: [&Tensor; W],
    ints: &[i64],
    floats: &[f64],
) -> Result<()> {
    launch_on(kernel, &reads, &writes, ints, floats)
}

/// Like [`launch`], for any number of tensors.
pub(crate) fn launch_on(
    kernel: &'static KernelDef,
    reads: &[&Tensor],
    writes: &[&Tensor],
    ints: &[i64],
    floats: &[f64],
) -> Result<()> {
    if writes.iter().any(|write| write.is_cuda()) {
        return launch_on_device(kernel, reads, writes, ints, floats);
    }
    HostContext::charge(|host| host.kernel_time(&work(kernel, reads.iter().chain(writes).copied())));
    access_all(reads, writes, &mut |inputs, outputs| match memory_order(
        kernel,
        inputs.iter().map(|input| input.layout),
        outputs[0].layout,
    ) {
        None => Ok((kernel.twin)(Args { kernel, inputs, outputs, ints, floats })?),
        Some(order) => launch_in_order(kernel, inputs, &mut outputs[0], &order),
    })
}

fn launch_in_order(
    kernel: &'static KernelDef,
    inputs: &[Input],
    output: &mut Output,
    order: &[usize],
) -> Result<()> {
    let mut layouts: SmallVec<[Layout; 4]> = inputs.iter().map(|input| *input.layout).collect();
    let mut layout = *output.layout;
    for layout in layouts.iter_mut().chain([&mut layout]) {
        layout.put_in_order(output.layout.sizes(), order)?;
    }
    let inputs = inputs.iter().zip(&layouts).map(|(input, layout)| Input { layout, ..*input });
    let inputs: SmallVec<[Input; 4]> = inputs.collect();
    let outputs = &mut [Output { bytes: output.bytes, layout: &layout }];
    Ok((kernel.twin)(Args { kernel, inputs: &inputs, outputs, ints: &[], floats: &[] })?)
}

/// For fewer elements, gathering takes less time than putting the layouts in order.
const WORTH_ORDERING: usize = 64;

/// The order in which an elementwise kernel goes through its tensors, so that a kernel that adds two transposed matrices
/// adds two contiguous ones. `None` for the order of a contiguous tensor, for a few elements and for other kernels.
fn memory_order<'a>(
    kernel: &KernelDef,
    inputs: impl IntoIterator<Item = &'a Layout, IntoIter: Clone>,
    output: &'a Layout,
) -> Option<Dims> {
    let (sizes, layouts) = (output.sizes(), iter::once(output).chain(inputs));
    let is_plain =
        |layout: &Layout| layout.is_contiguous() && (layout.sizes() == sizes || layout.ndim() == 0);
    if output.numel() < WORTH_ORDERING || layouts.clone().all(is_plain) || !kernel.is_elementwise() {
        return None;
    }
    Layout::order_of(sizes, &layouts.collect::<SmallVec<[&Layout; 4]>>())
}

/// The work of writing, or reading, every element of a tensor on the host.
pub(crate) fn work_on(tensor: &Tensor, cost: Cost) -> KernelWork {
    let elements = tensor.numel() as u64;
    let double = tensor.dtype() == DType::F64;
    KernelWork { bytes: elements * tensor.dtype().size() as u64, flops: cost.flops() * elements, double }
}

/// The work of a kernel on tensors of these sizes.
// ANCHOR: work
fn work<'a>(kernel: &KernelDef, tensors: impl Iterator<Item = &'a Tensor>) -> KernelWork {
    let mut work = KernelWork { double: kernel.types.contains(&DType::F64), ..KernelWork::default() };
    let mut most_elements = 0;
    for tensor in tensors {
        most_elements = most_elements.max(tensor.numel());
        work.bytes += (tensor.layout().distinct() * tensor.dtype().size()) as u64;
    }
    work.flops = kernel.cost.flops() * most_elements as u64;
    work
}
// ANCHOR_END: work

/// The default number of threads in a block.
const BLOCK: u32 = 256;

/// The number of threads that run in lockstep.
const WARP: u32 = 32;

/// The maximum number of blocks in a grid; beyond that, each thread handles several elements.
const MOST_BLOCKS: u64 = 65_535;

/// Queues a kernel on the device of its outputs.
fn launch_on_device(
    kernel: &'static KernelDef,
    reads: &[&Tensor],
    writes: &[&Tensor],
    ints: &[i64],
    floats: &[f64],
) -> Result<()> {
    let target = memory_of(writes[0])?;
    target.cuda().check_thread()?;
    if writes.iter().all(|write| write.numel() == 0) {
        return Ok(());
    }
    let copies = sources(reads, writes)?;
    let reads = reads.iter().zip(&copies).map(|(read, source)| match source {
        InputSource::Copied(copy) => copy,
        InputSource::Direct | InputSource::FirstOutput => *read,
    });
    let order = memory_order(kernel, reads.clone().map(Tensor::layout), writes[0].layout());
    let mut tensors = reads.chain(writes.iter().copied());
    let work = work(kernel, tensors.clone());
    let (mut ints, mut floats) = (ints, floats);
    let mut arguments: SmallVec<[Argument; 4]> = SmallVec::new();
    for parameter in kernel.parameters {
        arguments.push(match parameter {
            KernelParameter::In(dtype) | KernelParameter::Out(dtype) => {
                let fits = |tensor: &&Tensor| stored_alike(tensor.dtype(), *dtype);
                let tensor = tensors.next().filter(fits).ok_or_else(|| wrong_arguments(kernel))?;
                let mut layout = *tensor.layout();
                if let Some(order) = &order {
                    layout.put_in_order(writes[0].sizes(), order)?;
                }
                argument(tensor, layout)?
            }
            KernelParameter::Int => {
                Argument::Int(*ints.split_off_first().ok_or_else(|| wrong_arguments(kernel))?)
            }
            KernelParameter::Float => {
                Argument::Float(*floats.split_off_first().ok_or_else(|| wrong_arguments(kernel))?)
            }
            KernelParameter::Block(_, fields) => {
                Argument::Block(ints.split_off(..fields.len()).ok_or_else(|| wrong_arguments(kernel))?.into())
            }
        });
    }
    if tensors.next().is_some() || !ints.is_empty() || !floats.is_empty() {
        return Err(wrong_arguments(kernel));
    }
    // ANCHOR: grid
    let results = writes[0].numel() as u64;
    let blocks = match kernel.geometry {
        Geometry::Elements | Geometry::Indexed => results.div_ceil(u64::from(BLOCK)),
        Geometry::Rows => results,
        Geometry::LastDim => results / writes[0].sizes().last().map_or(1, |length| *length as u64).max(1),
        Geometry::Warps => results.div_ceil(u64::from(BLOCK / WARP)),
    };
    let grid = blocks.clamp(1, MOST_BLOCKS) as u32;
    let launch = Launch { kernel, grid, block: BLOCK, arguments, work };
    // ANCHOR_END: grid
    Ok(target.cuda().launch(target.current_stream(), launch)?)
}

fn wrong_arguments(kernel: &KernelDef) -> Error {
    Error::custom(format!("{} does not accept these arguments", kernel.symbol()))
}

/// Whether two dtypes look the same to a kernel: a bool is a byte.
fn stored_alike(a: DType, b: DType) -> bool {
    let stored = |dtype| if dtype == DType::Bool { DType::U8 } else { dtype };
    stored(a) == stored(b)
}

/// A tensor as a kernel argument: its address and this layout, or, for a number on the host, its value.
fn argument(tensor: &Tensor, layout: Layout) -> Result<Argument> {
    match tensor.storage().device() {
        Some(memory) => {
            let offset = tensor.storage_offset() * tensor.dtype().size();
            Ok(Argument::Tensor { pointer: memory.pointer(offset), view: layout.at_start() })
        }
        None if tensor.ndim() > 0 => {
            Err(Error::custom("expected a tensor on a GPU, and found one on the host"))
        }
        None => access([tensor], [], |[input], []| {
            let mut value = [0; 8];
            let bytes = input.dense_bytes(tensor.dtype());
            value[..bytes.len()].copy_from_slice(bytes);
            Argument::Value(value)
        }),
    }
}
