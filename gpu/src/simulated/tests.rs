//! Tests of asynchronous execution on a simulated GPU, as programs see it.

mod faults;
mod happens_before;
mod invariants;
mod machine;
mod order;
mod races;
mod transfers;

use super::*;
use crate::base::dtype::DType;
use crate::base::kernel::{
    Args, Argument, Cost, Geometry, KernelDef, KernelParameter, KernelWork, TwinError, TwinResult,
};
use crate::base::shape::Layout;
use crate::base::topology::Link;
use crate::contract::driver::Engine;
use crate::host::host_profile::LAPTOP_8_CORES;

static FILL: KernelDef =
    elementwise("fill", &[KernelParameter::Out(DType::F32), KernelParameter::Float], |args| {
        floats_mut(args.outputs[0].bytes).fill(args.floats[0] as f32);
        Ok(())
    });

static ADD_ONE: KernelDef =
    elementwise("add_one", &[KernelParameter::In(DType::F32), KernelParameter::Out(DType::F32)], |args| {
        if let Some(x) = args.inputs[0].bytes {
            args.outputs[0].bytes.copy_from_slice(x);
        }
        floats_mut(args.outputs[0].bytes).iter_mut().for_each(|y| *y += 1.0);
        Ok(())
    });

/// `y = 0`, then fails with an index out of bounds.
static FAIL: KernelDef = elementwise("gather", &[KernelParameter::Out(DType::F32)], |args| {
    args.outputs[0].bytes.fill(0);
    Err(TwinError::Other("index out of range in self".into()))
});

static NOTHING: KernelDef = elementwise("nothing", &[KernelParameter::Out(DType::F32)], |_| Ok(()));

const fn elementwise(
    name: &'static str,
    parameters: &'static [KernelParameter],
    twin: fn(Args<'_, '_>) -> TwinResult,
) -> KernelDef {
    KernelDef {
        name,
        module: module_path!(),
        types: &[DType::F32],
        parameters,
        geometry: Geometry::Elements,
        cost: Cost::Cheap,
        twin,
        of_f32: None,
    }
}

fn floats_mut(bytes: &mut [u8]) -> &mut [f32] {
    bytemuck::cast_slice_mut(bytes)
}

const MICROSECOND: u64 = 1_000;

struct Rig {
    gpu: Simulated,
    clock: Clock,
}

fn options() -> SimulatedOptions {
    SimulatedOptions {
        profile: &profile::T4,
        host: &LAPTOP_8_CORES,
        count: 1,
        memory: None,
        others: 0,
        seed: None,
        setup: Setup::default(),
    }
}

impl Rig {
    fn new(options: SimulatedOptions) -> Rig {
        let clock = Clock::default();
        let rig = Rig { gpu: Simulated::new(options, clock.clone()), clock };
        for device in 0..options.count {
            rig.gpu.synchronize(device).unwrap(); // Creates the context.
        }
        rig
    }

    fn one() -> Rig {
        Rig::new(options())
    }

    /// Floats on device 0, all equal to `value`, without pending work.
    fn device_floats(&self, count: usize, value: f32) -> DevicePtr {
        self.device_floats_on(0, count, value)
    }

    fn device_floats_on(&self, device: usize, count: usize, value: f32) -> DevicePtr {
        let pointer = self.gpu.malloc(device, count * 4).unwrap();
        self.fill(StreamId::default_of(device), pointer, count, value, 0);
        self.gpu.synchronize(device).unwrap();
        pointer
    }

    fn pinned_floats(&self, values: &[f32]) -> PinnedPtr {
        let pointer = self.gpu.malloc_host(values.len() * 4).unwrap();
        self.gpu.write_host(pointer, bytemuck::cast_slice(values)).unwrap();
        pointer
    }

    fn read_pinned(&self, pointer: PinnedPtr, count: usize) -> Vec<f32> {
        let mut values = vec![0.0; count];
        self.gpu.read_host(pointer, bytemuck::cast_slice_mut(&mut values)).unwrap();
        values
    }

    fn read_device(&self, pointer: DevicePtr, count: usize) -> Vec<f32> {
        self.read_device_on(0, pointer, count)
    }

    fn read_device_on(&self, device: usize, pointer: DevicePtr, count: usize) -> Vec<f32> {
        let mut values = vec![0.0; count];
        let target = HostTarget::Pageable(bytemuck::cast_slice_mut(&mut values));
        self.gpu.copy_device_to_host(StreamId::default_of(device), target, pointer, count * 4).unwrap();
        values
    }

    fn fill(
        &self,
        stream: StreamId,
        pointer: DevicePtr,
        count: usize,
        value: f32,
        microseconds: u64,
    ) -> OpId {
        let arguments = [tensor(pointer, count), Argument::Float(f64::from(value))];
        self.gpu.launch(stream, launch(&FILL, &arguments, microseconds)).unwrap()
    }

    fn stream(&self, blocking: bool) -> StreamId {
        self.gpu.stream_create(0, blocking).unwrap()
    }

    fn event(&self) -> EventId {
        self.gpu.event_create(0, true).unwrap()
    }

    fn spans(&self) -> Vec<Span> {
        self.gpu.take_spans()
    }
}

fn tensor(pointer: DevicePtr, count: usize) -> Argument {
    Argument::Tensor { pointer, view: Layout::contiguous(&[count]).unwrap() }
}

/// A launch that takes about that many microseconds on a T4, which attains 240 GB/s.
fn launch(kernel: &'static KernelDef, arguments: &[Argument], microseconds: u64) -> Launch {
    Launch {
        kernel,
        grid: 10_000,
        block: 256,
        arguments: arguments.into(),
        work: KernelWork { bytes: microseconds * 240_000, flops: 0, double: false },
    }
}

fn count_of(values: &[f32], value: f32) -> usize {
    values.iter().filter(|other| **other == value).count()
}

/// Products of square matrices, at no particular address.
pub(super) fn squares(batch: usize, size: usize) -> Gemm {
    Gemm {
        dtype: DType::F32,
        batch,
        m: size,
        n: size,
        k: size,
        a: DevicePtr(0),
        a_strides: [size, 1],
        a_step: 0,
        b: DevicePtr(0),
        b_strides: [size, 1],
        b_step: 0,
        c: DevicePtr(0),
        accumulate: false,
        tf32: false,
        workspace: Default::default(),
        twin: |_, _, _, _| Ok(()),
    }
}
