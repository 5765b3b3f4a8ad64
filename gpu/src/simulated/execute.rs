//! The effects of work on memory.

use std::array::from_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use smallvec::SmallVec;

use super::card::SimulatedDevice;
use super::errors;
use super::memory::{Access, AddressSpace, Bytes};
use super::pinned::PinnedSpace;
use super::task::{CopyTask, End};
use crate::base::dtype::DType;
use crate::base::gemm::Gemm;
use crate::base::kernel::{Args, Argument, Input, KernelParameter, Launch, Output, TwinError, TwinResult};
use crate::base::shape::Layout;
use crate::contract::driver::{DevicePtr, DriverResult};

const MOST_OPERANDS: usize = 8;

/// The layout of a scalar in place of a tensor.
static NUMBER: LazyLock<Layout> =
    LazyLock::new(|| Layout::contiguous(&[]).expect("no dimensions are not too many"));

pub(super) fn copy(
    devices: &mut [SimulatedDevice],
    pinned: &mut PinnedSpace,
    copy: &CopyTask,
    (start, bytes): (usize, usize),
) -> DriverResult<()> {
    match (copy.from.offset(start), copy.to.offset(start)) {
        (End::Pinned(from), End::Device { device, address }) => {
            devices[device].memory.write(address, pinned.space().bytes(from, bytes)?)
        }
        (End::Device { device, address }, End::Pinned(to)) => {
            devices[device].memory.read(address, pinned.space().bytes_mut(to, bytes)?)
        }
        (End::Device { device, address: from }, End::Device { device: other, address: to }) => {
            let Ok([source, target]) = devices.get_disjoint_mut([device, other]) else {
                return devices[device].memory.copy_within(from, to, bytes);
            };
            target.memory.write(to, source.memory.bytes(from, bytes)?)
        }
        (End::Pinned(from), End::Pinned(to)) => pinned.space().copy_within(from, to, bytes),
    }
}

pub(super) fn memset(memory: &mut AddressSpace, to: DevicePtr, value: u8, bytes: usize) -> DriverResult<()> {
    memory.bytes_mut(to.0, bytes)?.fill(value);
    Ok(())
}

pub(super) fn arguments_fit(launch: &Launch) -> bool {
    let parameters = launch.kernel.parameters;
    let fits = |(parameter, argument): (&KernelParameter, &Argument)| match (parameter, argument) {
        (KernelParameter::Block(_, fields), Argument::Block(values)) => fields.len() == values.len(),
        (KernelParameter::In(_), Argument::Tensor { .. } | Argument::Value(_))
        | (KernelParameter::Out(_), Argument::Tensor { .. })
        | (KernelParameter::Int, Argument::Int(_))
        | (KernelParameter::Float, Argument::Float(_)) => true,
        _ => false,
    };
    parameters.len() == launch.arguments.len()
        && operands_of(launch, |parameter| matches!(parameter, KernelParameter::In(_))) <= MOST_OPERANDS
        && operands_of(launch, |parameter| matches!(parameter, KernelParameter::Out(_))) <= MOST_OPERANDS
        && parameters.iter().zip(&launch.arguments).all(fits)
}

fn operands_of(launch: &Launch, kind: impl Fn(&KernelParameter) -> bool) -> usize {
    launch.kernel.parameters.iter().filter(|parameter| kind(parameter)).count()
}

enum ReadFrom {
    /// In place.
    FirstOutput,
    Memory,
    Value {
        bits: u64,
        size: usize,
    },
}

pub(super) fn kernel(memory: &mut AddressSpace, launch: &Launch) -> DriverResult<()> {
    let operands = || launch.kernel.parameters.iter().zip(&launch.arguments);
    let (mut written, mut output_views) = (SmallVec::<[Access; 6]>::new(), SmallVec::<[&Layout; 4]>::new());
    for (parameter, argument) in operands() {
        if let (KernelParameter::Out(dtype), Argument::Tensor { pointer, view }) = (parameter, argument) {
            written.push(operand(*pointer, view, *dtype, true)?);
            output_views.push(view);
        }
    }

    let number = &*NUMBER;
    let (mut ints, mut floats) = (SmallVec::<[i64; 8]>::new(), SmallVec::<[f64; 8]>::new());
    let mut inputs = SmallVec::<[(ReadFrom, &Layout); 4]>::new();
    let mut accesses = written.clone();
    for (parameter, argument) in operands() {
        match (parameter, argument) {
            (KernelParameter::In(dtype), Argument::Tensor { pointer, view }) => {
                let access = operand(*pointer, view, *dtype, false)?;
                let source = if is_first_output(launch, *dtype, *pointer, view) {
                    ReadFrom::FirstOutput
                } else {
                    accesses.push(access);
                    ReadFrom::Memory
                };
                inputs.push((source, view));
            }
            (KernelParameter::In(dtype), Argument::Value(bytes)) => {
                let source = ReadFrom::Value { bits: u64::from_ne_bytes(*bytes), size: dtype.size() };
                inputs.push((source, number));
            }
            (_, Argument::Int(int)) => ints.push(*int),
            (_, Argument::Block(block)) => ints.extend_from_slice(block),
            (_, Argument::Float(float)) => floats.push(*float),
            _ => {}
        }
    }

    // Overwritten contents need not be kept, and a copy of a shared range shares it.
    if let ([output], [view]) = (&written[..], &output_views[..])
        && launch.kernel.is_elementwise()
        && view.is_contiguous()
        && !inputs.iter().any(|(source, _)| matches!(source, ReadFrom::FirstOutput))
    {
        if launch.kernel.is_copy()
            && let ([(_, from)], [_, input]) = (&inputs[..], &accesses[..])
            && from == view
            && let Some(shared) = memory.shared(input.address, input.bytes)
        {
            return memory.share(output.address, shared);
        }
        memory.discard(output.address, output.bytes);
    }

    // Outputs first, then the inputs in memory. The caller of the launch ensures that these overlap no output.
    let mut borrowed = memory.borrow(&accesses)?.into_iter();
    let mut outputs: [Output; MOST_OPERANDS] = from_fn(|_| Output { bytes: &mut [], layout: number });
    for (output, layout) in outputs.iter_mut().zip(&output_views) {
        if let Some(Bytes::Write(bytes)) = borrowed.next() {
            *output = Output { bytes, layout };
        }
    }
    let mut twin_inputs: [Input; MOST_OPERANDS] = from_fn(|_| Input { bytes: None, layout: number });
    for (input, (source, layout)) in twin_inputs.iter_mut().zip(&inputs) {
        let bytes = match source {
            ReadFrom::FirstOutput => None,
            ReadFrom::Memory => borrowed.next().and_then(Bytes::read),
            ReadFrom::Value { bits, size } => Some(&bytemuck::bytes_of(bits)[..*size]),
        };
        *input = Input { bytes, layout };
    }
    let arguments = Args {
        kernel: launch.kernel,
        inputs: &twin_inputs[..inputs.len()],
        outputs: &mut outputs[..output_views.len()],
        ints: &ints,
        floats: &floats,
    };
    run(|| launch.kernel.symbol(), || (launch.kernel.twin)(arguments))
}

/// Runs a twin. An error is a failed assertion on the device, unless the computer had no memory for the twin's
/// workspace. A panic is a bug in the twin. It becomes a failed launch, because the simulation must complete its event.
pub(super) fn run(symbol: impl Fn() -> String, twin: impl FnOnce() -> TwinResult) -> DriverResult<()> {
    match catch_unwind(AssertUnwindSafe(twin)) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(TwinError::OutOfHostMemory { bytes })) => Err(errors::out_of_host_memory_in(&symbol(), bytes)),
        Ok(Err(TwinError::Other(error))) => Err(errors::device_assert(symbol(), &*error)),
        Err(_) => Err(errors::launch_failure(symbol())),
    }
}

/// The address of a tensor must be a multiple of the element size.
fn operand(pointer: DevicePtr, view: &Layout, dtype: DType, write: bool) -> DriverResult<Access> {
    let bytes = view.reach() * dtype.size();
    if bytes > 0 && !pointer.0.is_multiple_of(dtype.size() as u64) {
        return Err(errors::misaligned_address());
    }
    Ok(Access { address: pointer.0, bytes, write })
}

/// Whether an input is the first output, element for element.
fn is_first_output(launch: &Launch, dtype: DType, pointer: DevicePtr, view: &Layout) -> bool {
    let index =
        launch.kernel.parameters.iter().position(|parameter| matches!(parameter, KernelParameter::Out(_)));
    let Some(index) = index else { return false };
    match &launch.arguments[index] {
        Argument::Tensor { pointer: of_output, view: output } => {
            launch.kernel.parameters[index] == KernelParameter::Out(dtype)
                && *of_output == pointer
                && output == view
        }
        _ => false,
    }
}

pub(super) fn gemm(memory: &mut AddressSpace, gemm: &Gemm) -> DriverResult<()> {
    if gemm.batch * gemm.m * gemm.n == 0 {
        return Ok(());
    }
    let accesses = gemm_accesses(gemm);
    if !gemm.accumulate {
        memory.discard(accesses[2].address, accesses[2].bytes);
    }
    match &mut memory.borrow(&accesses)?[..] {
        [Bytes::Read(a), Bytes::Read(b), Bytes::Write(c)] => {
            run(|| "gemm".to_string(), || (gemm.twin)(gemm, a, b, c))
        }
        _ => Err(errors::illegal_address()),
    }
}

pub(super) fn gemm_accesses(gemm: &Gemm) -> [Access; 3] {
    let range = |pointer: DevicePtr, elements: usize, write: bool| {
        let bytes = elements * gemm.dtype.size();
        Access { address: pointer.0, bytes, write }
    };
    let [a, b, c] = gemm.reach();
    [range(gemm.a, a, false), range(gemm.b, b, false), range(gemm.c, c, true)]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use smallvec::smallvec;

    use super::super::shared::Shared;
    use super::*;
    use crate::base::kernel::{Cost, Geometry, KernelDef, KernelWork};

    const COUNT: usize = 32 << 10;

    static COPY: KernelDef = KernelDef {
        name: "copy",
        module: module_path!(),
        types: &[DType::F32],
        parameters: &[KernelParameter::In(DType::F32), KernelParameter::Out(DType::F32)],
        geometry: Geometry::Elements,
        cost: Cost::Cheap,
        twin: |args| {
            args.outputs[0].elements::<f32>().copy_from_slice(args.inputs[0].elements());
            Ok(())
        },
        of_f32: None,
    };

    /// A copy of a shared range moves no bytes, but shares them.
    #[test]
    fn a_copy_of_what_is_shared_shares_it() {
        let mut memory = AddressSpace::new(1 << 40, 1 << 21, Arc::default());
        let bytes = COUNT * size_of::<f32>();
        let [shared, own, target] = [(); 3].map(|()| memory.insert(bytes));
        let whole = Arc::new(vec![7; bytes]);
        memory.share(shared, Shared::new(whole.clone(), 0..bytes)).unwrap();
        memory.bytes_mut(own, bytes).unwrap().fill(1);
        let copy = |memory: &mut AddressSpace, from: u64| {
            let view = Layout::contiguous(&[COUNT]).unwrap();
            let at = |address| Argument::Tensor { pointer: DevicePtr(address), view };
            let arguments = smallvec![at(from), at(target)];
            let launch = Launch { kernel: &COPY, grid: 1, block: 1, arguments, work: KernelWork::default() };
            kernel(memory, &launch).unwrap();
            memory.bytes(target, bytes).unwrap().to_vec()
        };
        assert_eq!(copy(&mut memory, shared), *whole);
        assert_eq!(memory.bytes(target, bytes).unwrap().as_ptr(), whole.as_ptr());
        assert_eq!(copy(&mut memory, own), vec![1; bytes]);
        assert!(memory.shared(target, bytes).is_none());
        assert_eq!(memory.bytes(shared, bytes).unwrap(), &whole[..]);
    }
}
