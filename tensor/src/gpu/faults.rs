//! Fault injection: any driver call may fail. The failure must become an error, and the next operation must run.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use todevice_gpu::base::gemm::Gemm;
use todevice_gpu::base::process::Process;
use todevice_gpu::contract::libraries::Libraries;

use super::driver::{
    DevicePtr, Driver, DriverError, DriverResult, EventId, HostSource, HostTarget, MemoryInfo, OpId,
    PinnedPtr, Span, StreamId,
};
use super::simulated::profile::{H200, T4};
use super::simulated::{Simulated, SimulatedOptions};
use super::{DeviceProperties, Event, EventOptions, Stream};
use crate::backends::cudnn;
use crate::conv::{Conv, ConvAlgorithm};
use crate::data::{DataLoader, DataLoaderOptions, DevicePrefetcher, TensorDataset};
use crate::host_profile::LAPTOP_8_CORES;
use crate::kernel::{Cost, Geometry, KernelDef, KernelParameter, Launch, TwinError};
use crate::lock::lock;
use crate::monitor::Gpu;
use crate::prelude::*;
use crate::{Conv2dOptions, DType, Device, Machine, Result, Tensor, ToOptions, cuda};

/// The failing call, and the resources in use.
#[derive(Default)]
struct Faults {
    calls: usize,
    fail_at: Option<usize>,
    failed: Option<&'static str>,
    events: HashSet<EventId>,
    pinned: HashSet<PinnedPtr>,
}

/// Simulated devices with one failing call.
struct Faulty {
    inner: Simulated,
    faults: Arc<Mutex<Faults>>,
}

impl Faulty {
    fn call(&self, name: &'static str) -> DriverResult<()> {
        let mut faults = lock(&self.faults);
        faults.calls += 1;
        if faults.fail_at != Some(faults.calls) {
            return Ok(());
        }
        faults.failed = Some(name);
        Err(DriverError { code: 999, name: "cudaErrorUnknown", message: "unknown error", detail: None })
    }

    fn give<T: Copy + Eq + Hash>(
        &self,
        name: &'static str,
        given: fn(&mut Faults) -> &mut HashSet<T>,
        call: impl FnOnce() -> DriverResult<T>,
    ) -> DriverResult<T> {
        self.call(name)?;
        let handle = call()?;
        given(&mut lock(&self.faults)).insert(handle);
        Ok(handle)
    }
}

macro_rules! pass_on {
    ($($name:ident($($argument:ident: $T:ty),*) -> $R:ty;)*) => {$(
        fn $name(&self, $($argument: $T),*) -> DriverResult<$R> {
            self.call(stringify!($name))?;
            self.inner.$name($($argument),*)
        }
    )*};
}

impl Driver for Faulty {
    pass_on! {
        memory_info(device: usize) -> MemoryInfo;
        malloc(device: usize, bytes: usize) -> DevicePtr;
        free(device: usize, pointer: DevicePtr) -> ();
        read_host(from: PinnedPtr, into: &mut [u8]) -> ();
        write_host(into: PinnedPtr, from: &[u8]) -> ();
        copy_host_to_device(stream: StreamId, to: DevicePtr, from: HostSource<'_>, bytes: usize) -> OpId;
        copy_device_to_host(stream: StreamId, to: HostTarget<'_>, from: DevicePtr, bytes: usize) -> OpId;
        copy_peer(stream: StreamId, to: (usize, DevicePtr), from: (usize, DevicePtr), bytes: usize) -> OpId;
        memset(stream: StreamId, to: DevicePtr, value: u8, bytes: usize) -> OpId;
        stream_create(device: usize, blocking: bool) -> StreamId;
        stream_query(stream: StreamId) -> bool;
        stream_synchronize(stream: StreamId) -> ();
        synchronize_untracked(stream: StreamId) -> ();
        stream_wait_event(stream: StreamId, event: EventId) -> ();
        event_record(event: EventId, stream: StreamId) -> ();
        event_query(event: EventId) -> bool;
        event_synchronize(event: EventId) -> ();
        event_elapsed(start: EventId, end: EventId) -> f32;
        launch(stream: StreamId, launch: Launch) -> OpId;
        synchronize(device: usize) -> ();
        can_access_peer(device: usize, peer: usize) -> bool;
        enable_peer_access(device: usize, peer: usize) -> ();
    }

    fn device_count(&self) -> usize {
        self.inner.device_count()
    }

    fn properties(&self, device: usize) -> DeviceProperties {
        self.inner.properties(device)
    }

    fn take_spans(&self) -> Vec<Span> {
        self.inner.take_spans()
    }

    fn malloc_host(&self, bytes: usize) -> DriverResult<PinnedPtr> {
        self.give("malloc_host", |faults| &mut faults.pinned, || self.inner.malloc_host(bytes))
    }

    fn free_host(&self, pointer: PinnedPtr) -> DriverResult<()> {
        self.call("free_host")?;
        lock(&self.faults).pinned.remove(&pointer);
        self.inner.free_host(pointer)
    }

    fn event_create(&self, device: usize, timing: bool) -> DriverResult<EventId> {
        self.give("event_create", |faults| &mut faults.events, || self.inner.event_create(device, timing))
    }

    fn event_destroy(&self, event: EventId) -> DriverResult<()> {
        self.call("event_destroy")?;
        lock(&self.faults).events.remove(&event);
        self.inner.event_destroy(event)
    }
}

impl Libraries for Faulty {
    pass_on! {
        gemm(stream: StreamId, gemm: Gemm) -> OpId;
        convolution_algorithms(device: usize, conv: &Conv) -> Vec<ConvAlgorithm>;
        convolution(stream: StreamId, conv: &Conv, algorithm: &ConvAlgorithm, workspace: DevicePtr) -> OpId;
    }

    fn processes(&self, device: usize) -> Vec<Process> {
        self.inner.processes(device)
    }

    fn monitor(&self, device: usize) -> Option<Gpu> {
        self.inner.monitor(device)
    }

    fn cudnn_version(&self) -> Option<usize> {
        self.inner.cudnn_version()
    }
}

fn machine(faults: &Arc<Mutex<Faults>>, linked: bool) -> Machine {
    let profile = if linked { &H200 } else { &T4 };
    let options = SimulatedOptions {
        profile,
        host: &LAPTOP_8_CORES,
        count: 2,
        memory: None,
        others: 0,
        seed: None,
        setup: Default::default(),
    };
    let faults = faults.clone();
    Machine::with_driver(|clock| Box::new(Faulty { inner: Simulated::new(options, clock), faults }))
}

fn gpu() -> Device {
    Device::cuda(0)
}

fn at_once(device: Device) -> ToOptions {
    ToOptions { device: Some(device), non_blocking: true, ..Default::default() }
}

type FaultyProgram = fn() -> Result<Vec<f32>>;

fn streams_and_events() -> Result<Vec<f32>> {
    let (side, x) = (Stream::new(gpu())?, Tensor::full(&[100], (2.0, gpu()))?);
    let timed = || Event::new(EventOptions { enable_timing: true });
    let (start, end) = (timed(), timed());
    start.record()?;
    side.wait_stream(&cuda::current_stream(gpu())?)?;
    let y = cuda::stream(&side, || x.matmul(&x)?.add(1.0))?;
    x.record_stream(&side)?;
    drop(x);
    end.record_on(&side)?;
    end.wait()?;
    let z = y.mul(2.0)?;
    y.record_stream(&cuda::current_stream(gpu())?)?;
    drop(y);
    while !end.query()? {}
    assert!(start.elapsed_time(&end)? > 0.0 && end.elapsed_time(&start)? < 0.0);
    side.record_event()?.synchronize()?;
    side.synchronize()?;
    assert!(side.query()?);
    cuda::synchronize()?;
    z.to_vec()
}

fn pinned_there_and_back() -> Result<Vec<f32>> {
    let side = Stream::new(gpu())?;
    let x = Tensor::arange(0, 1000, (1, DType::F32))?.pin_memory()?;
    x.mul_(0.5)?;
    let there = x.to(at_once(gpu()))?;
    let on_side = cuda::stream(&side, || x.to(at_once(gpu())))?;
    let blocking = x.to(gpu())?;
    drop(x);
    let other = Tensor::full(&[1000], (9.0, DType::F32))?.pin_memory()?; // It must not get the block yet.
    let back = (&there + &blocking)?.to(at_once(Device::Cpu))?;
    let on_side = cuda::stream(&side, || on_side.to(at_once(Device::Cpu)))?;
    cuda::synchronize()?;
    ((back + on_side)? + other)?.to_vec()
}

fn between_cards() -> Result<Vec<f32>> {
    let second = Device::cuda(1);
    let (from, to) = (Stream::new(gpu())?, Stream::new(second)?);
    cuda::stream(&from, || {
        let x = Tensor::full(&[500], (3.0, gpu()))?;
        cuda::stream(&to, || {
            let there = x.to(second)?.add(1.0)?;
            drop(x);
            there.to(gpu())?.to_vec()
        })
    })
}

fn gradients_on_streams() -> Result<Vec<f32>> {
    let side = Stream::new(gpu())?;
    let x = Tensor::full(&[20], (0.5, gpu()))?.requires_grad_(true)?;
    side.wait_stream(&cuda::current_stream(gpu())?)?;
    let y = cuda::stream(&side, || x.exp()?.mul(3.0))?;
    cuda::current_stream(gpu())?.wait_stream(&side)?;
    (y.square()?.sum()? + x.sum()?)?.backward()?;
    x.grad().expect("a gradient").to_vec()
}

fn feeding() -> Result<Vec<f32>> {
    let dataset = TensorDataset::new([Tensor::arange(0, 50, (1, DType::F32))?])?;
    let options =
        DataLoaderOptions { batch_size: 16, num_workers: 2, pin_memory: true, ..Default::default() };
    let loader = DataLoader::new(dataset, options)?;
    let sum = |batch: Result<[Tensor; 1]>| batch?[0].sum()?.to_vec::<f32>();
    Ok(DevicePrefetcher::new(&loader, gpu())?.map(sum).collect::<Result<Vec<_>>>()?.concat())
}

/// Convolutions with the fastest of several algorithms, with gradients.
fn convolutions() -> Result<Vec<f32>> {
    cudnn::set_benchmark(true);
    cudnn::set_deterministic(true);
    let x = Tensor::full(&[2, 3, 6, 6], (0.5, gpu()))?.requires_grad_(true)?;
    let weight = Tensor::full(&[4, 3, 3, 3], (0.25, gpu()))?.requires_grad_(true)?;
    let options = Conv2dOptions { padding: 1.into(), ..Default::default() };
    x.conv2d(&weight, (None, options))?.square()?.sum()?.backward()?;
    Ok([x.grad().expect("a gradient").to_vec()?, weight.grad().expect("a gradient").to_vec()?].concat())
}

/// Moves a model and an optimizer's state, and continues training.
fn training() -> Result<Vec<f32>> {
    manual_seed(0);
    let model = nn::Linear::new(3, 2)?;
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;
    let train = |device: Device, optimizer: &mut optim::Adam| -> Result<()> {
        model.to(device)?;
        optim::optimizer_to(optimizer, device)?;
        optimizer.zero_grad();
        model.forward(&Tensor::ones((&[4, 3], device))?)?.square()?.sum()?.backward()?;
        optimizer.step()
    };
    train(Device::Cpu, &mut optimizer)?;
    train(gpu(), &mut optimizer)?;
    let state = optimizer.state_dict();
    optimizer.load_state_dict(&state)?;
    train(Device::cuda(1), &mut optimizer)?;
    model.weight.tensor().detach().to_vec()
}

/// Calls whose failure may stay hidden. A handle was not released, or a dropped block got no event and is not kept.
const QUIET: [&str; 6] =
    ["event_destroy", "event_create", "event_record", "stream_wait_event", "free_host", "event_query"];

/// The resources without pending work: device bytes, events and pinned blocks. Allocators keep some for later.
fn held(faults: &Mutex<Faults>) -> (u64, usize, usize) {
    for device in 0..2 {
        cuda::device(device, || cuda::synchronize()).unwrap().unwrap();
        // Makes the allocator check for freed blocks.
        drop(Tensor::ones((&[1], Device::cuda(device))).unwrap());
    }
    drop(Tensor::ones(&[1]).unwrap().pin_memory().unwrap());
    let faults = lock(faults);
    (cuda::memory_allocated(), faults.events.len(), faults.pinned.len())
}

/// Makes each call of a program fail in turn.
fn inject(program: FaultyProgram, linked: bool) {
    let expected = machine(&Arc::default(), linked).enter(program).unwrap();
    let faults = Arc::<Mutex<Faults>>::default();
    let (calls, clean) = machine(&faults, linked).enter(|| {
        program().unwrap();
        let calls = lock(&faults).calls;
        program().unwrap();
        (calls, held(&faults))
    });
    assert!(calls > 10, "{calls}");
    let (mut errors, mut quiet) = (0, HashSet::new());
    for fail_at in 1..=calls {
        let faults = Arc::<Mutex<Faults>>::default();
        let machine = machine(&faults, linked);
        lock(&faults).fail_at = Some(fail_at);
        machine.enter(|| {
            let result = program();
            let failed = lock(&faults).failed.expect("a call failed");
            match result {
                Ok(values) => {
                    assert_eq!(values, expected, "call {fail_at}, {failed}");
                    assert!(QUIET.contains(&failed), "call {fail_at}, {failed}, was not heard of");
                    quiet.insert(failed);
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("CUDA error: unknown error"), "call {fail_at}, {failed}: {text}");
                    errors += 1;
                }
            }
            // Afterwards the program runs normally, any number of times.
            let held = |run: usize| {
                assert_eq!(program().unwrap(), expected, "call {fail_at}, {failed}, run {run}");
                held(&faults)
            };
            let first = held(1);
            let lost = first.1.saturating_sub(clean.1);
            // An event that could not be destroyed is lost. One that could not be queried is replaced.
            let allowed = usize::from(["event_destroy", "event_query"].contains(&failed));
            assert!(lost <= allowed, "{lost} events are lost: {failed}");
            assert_eq!(held(2), first, "call {fail_at}, {failed}");
            assert_eq!(held(3), first, "call {fail_at}, {failed}");
        });
    }
    assert!(errors * 2 > calls, "{errors} of {calls}, quiet {quiet:?}");
}

#[test]
fn of_streams_and_events() {
    inject(streams_and_events, false);
}

#[test]
fn of_pinned_memory() {
    inject(pinned_there_and_back, false);
}

#[test]
fn of_copies_between_cards() {
    inject(between_cards, false);
    inject(between_cards, true);
}

#[test]
fn of_gradients_on_streams() {
    inject(gradients_on_streams, false);
}

#[test]
fn of_convolutions() {
    inject(convolutions, false);
}

#[test]
fn of_loaders_and_prefetchers() {
    inject(feeding, false);
}

#[test]
fn of_training_that_moves() {
    inject(training, true);
}

#[test]
fn of_launches_that_wait() {
    fn blocking(program: FaultyProgram) -> Result<Vec<f32>> {
        cuda::set_launch_blocking(true)?;
        program()
    }
    inject(|| blocking(streams_and_events), false);
    inject(|| blocking(pinned_there_and_back), false);
    inject(|| blocking(between_cards), true);
}

/// A kernel that finds no memory for its workspace.
static HUNGRY: KernelDef = KernelDef {
    name: "hungry",
    module: module_path!(),
    types: &[DType::F32],
    parameters: &[KernelParameter::Out(DType::F32)],
    geometry: Geometry::Elements,
    cost: Cost::Cheap,
    twin: |_| Err(TwinError::OutOfHostMemory { bytes: 123 }),
    of_f32: None,
};

#[test]
fn a_program_that_was_told_of_it_goes_on() -> Result<()> {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        let x = Tensor::ones((&[4], Device::cuda(0)))?;
        crate::ops::launch::launch(&HUNGRY, [], [&x], &[], &[])?;
        let error = cuda::synchronize().unwrap_err().to_string();
        let says = "CUDA error: out of memory (this computer cannot provide the 123 bytes";
        assert!(error.starts_with(says), "{error}");
        x.add_(1.0)?;
        assert_eq!(x.to_vec::<f32>()?, [2.0; 4]);
        cuda::synchronize()
    })
}
