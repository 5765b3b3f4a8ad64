//! Tests of the errors of queued work, and of kernels' memory accesses.

use super::*;

fn fail(rig: &Rig) {
    let x = rig.device_floats(4, 1.0);
    rig.gpu.launch(StreamId::default_of(0), launch(&FAIL, &[tensor(x, 4)], 100)).unwrap();
}

#[test]
fn a_failed_assertion_surfaces_at_a_later_call_and_sticks() {
    let rig = Rig::one();
    let stream = rig.stream(false);
    fail(&rig);
    // The launch has returned, and calls before the kernel's time succeed.
    let x = DevicePtr(0);
    rig.gpu.launch(stream, launch(&NOTHING, &[tensor(x, 0)], 0)).unwrap();
    let error = rig.gpu.synchronize(0).unwrap_err();
    assert_eq!((error.code, error.name), (710, "cudaErrorAssert"));
    assert_eq!(error.message, "device-side assert triggered");
    let detail = error.detail.clone().unwrap();
    assert_eq!(detail, "gather_f32: index out of range in self");

    let gpu = &rig.gpu;
    assert_eq!(gpu.synchronize(0), Err(error.clone()));
    assert_eq!(gpu.malloc(0, 4), Err(error.clone()));
    assert_eq!(gpu.memory_info(0), Err(error.clone()));
    assert_eq!(gpu.stream_query(stream), Err(error.clone()));
    assert_eq!(gpu.stream_create(0, false), Err(error.clone()));
    assert_eq!(gpu.launch(stream, launch(&NOTHING, &[tensor(x, 0)], 0)), Err(error));
}

/// Finds no memory for its workspace.
static HUNGRY: KernelDef = elementwise("hungry", &[KernelParameter::Out(DType::F32)], |_| {
    Err(TwinError::OutOfHostMemory { bytes: 123 })
});

#[test]
fn a_kernel_that_the_computer_has_no_memory_for_is_no_assertion_and_is_over_when_it_is_told() {
    let rig = Rig::new(SimulatedOptions { count: 2, ..options() });
    let (gpu, stream) = (&rig.gpu, StreamId::default_of(0));
    let (x, other, event) = (rig.device_floats(4, 1.0), rig.stream(false), rig.event());
    gpu.launch(stream, launch(&HUNGRY, &[tensor(x, 4)], 100)).unwrap();
    // Later work does not run, and nothing waits for it.
    rig.fill(stream, x, 4, 2.0, 10);
    gpu.event_record(event, stream).unwrap();
    gpu.stream_wait_event(other, event).unwrap();
    let error = gpu.synchronize(0).unwrap_err();
    assert_eq!((error.code, error.name), (2, "cudaErrorMemoryAllocation"));
    let detail = error.detail.as_deref().unwrap();
    assert_eq!(
        detail,
        "this computer cannot provide the 123 bytes that the simulated kernel hungry_f32 needs"
    );
    assert_eq!(gpu.synchronize(0), Err(error.clone()), "nobody may have heard it yet");
    gpu.error_returned(&error);
    gpu.event_synchronize(event).unwrap();
    gpu.stream_synchronize(other).unwrap();
    assert_eq!(rig.read_device(x, 4), [1.0; 4]);
    rig.fill(stream, x, 4, 3.0, 10);
    assert_eq!(rig.read_device(x, 4), [3.0; 4]);
    // Returning an assertion does not clear it.
    fail(&rig);
    let error = gpu.synchronize(0).unwrap_err();
    gpu.error_returned(&error);
    assert_eq!(gpu.synchronize(0), Err(error));
}

#[test]
fn a_launch_reports_the_fault_of_one_before_as_soon_as_it_has_happened() {
    let rig = Rig::one();
    fail(&rig);
    let nothing = || rig.gpu.launch(StreamId::default_of(0), launch(&NOTHING, &[tensor(DevicePtr(0), 0)], 0));
    let launches = (0..100).take_while(|_| nothing().is_ok()).count();
    // 6 µs until the kernel starts and 100 µs for it, at 5 µs per launch.
    assert_eq!(launches, 21);
}

#[test]
fn a_copy_back_reports_the_fault_and_leaves_the_target() {
    let rig = Rig::one();
    let x = rig.device_floats(4, 1.0);
    fail(&rig);
    let mut target = [7u8; 16];
    let to = HostTarget::Pageable(&mut target);
    let error = rig.gpu.copy_device_to_host(StreamId::default_of(0), to, x, 16).unwrap_err();
    assert_eq!(error.code, 710);
    assert_eq!(target, [7; 16]);
}

#[test]
fn work_behind_a_fault_never_runs_and_its_buffers_are_let_go() {
    let rig = Rig::one();
    let (x, host) = (rig.device_floats(4, 1.0), rig.pinned_floats(&[-1.0; 4]));
    let (stream, event) = (rig.stream(false), rig.event());
    fail(&rig);
    rig.gpu.copy_device_to_host(StreamId::default_of(0), HostTarget::Pinned(host), x, 16).unwrap();
    rig.fill(stream, x, 4, 2.0, 1_000); // Running or waiting for the multiprocessors at the time of the fault.
    rig.gpu.event_record(event, stream).unwrap();
    assert!(rig.gpu.event_synchronize(event).is_err());
    assert_eq!(rig.read_pinned(host, 4), [-1.0; 4]);
    rig.gpu.free_host(host).unwrap();
    assert_eq!(rig.gpu.state().pinned.count(), 0);
    assert!(rig.gpu.free(0, x).is_err());
    assert!(rig.gpu.free(0, x).is_err(), "given back twice, or a dead context: it stays an error");
}

#[test]
fn a_fault_is_one_devices_own() {
    let rig = Rig::new(SimulatedOptions { count: 2, ..options() });
    let other = StreamId::default_of(1);
    let (x, event) = (rig.device_floats_on(1, 4, 1.0), rig.event());
    fail(&rig);
    rig.gpu.event_record(event, StreamId::default_of(0)).unwrap();
    rig.gpu.stream_wait_event(other, event).unwrap();
    rig.fill(other, x, 4, 2.0, 10);
    rig.gpu.synchronize(1).unwrap();
    assert_eq!(rig.read_device_on(1, x, 4), [2.0; 4]);
    assert!(rig.gpu.synchronize(0).is_err());
}

#[test]
fn a_kernel_that_reaches_outside_its_memory_faults() {
    for (offset, count) in [(0, 5), (16, 1), (1 << 30, 1)] {
        let rig = Rig::one();
        let x = rig.device_floats(4, 1.0);
        rig.fill(StreamId::default_of(0), DevicePtr(x.0 + offset), count, 2.0, 10);
        let error = rig.gpu.synchronize(0).unwrap_err();
        assert_eq!((error.code, error.name), (700, "cudaErrorIllegalAddress"));
        assert_eq!(error.message, "an illegal memory access was encountered");
    }
}

#[test]
fn a_tensor_between_two_elements_faults() {
    let rig = Rig::one();
    let x = rig.device_floats(4, 1.0);
    rig.fill(StreamId::default_of(0), DevicePtr(x.0 + 2), 1, 2.0, 10);
    assert_eq!(rig.gpu.synchronize(0).unwrap_err().message, "misaligned address");
}

#[test]
fn arguments_of_the_wrong_kinds_are_refused_at_once() {
    let rig = Rig::one();
    let x = rig.device_floats(4, 1.0);
    let stream = StreamId::default_of(0);
    for arguments in
        [&[tensor(x, 4)][..], &[tensor(x, 4), Argument::Int(1)], &[const { Argument::Float(1.0) }; 2]]
    {
        assert_eq!(rig.gpu.launch(stream, launch(&FILL, arguments, 1)), Err(errors::invalid_value()));
    }
    rig.gpu.synchronize(0).unwrap();
}

/// Writes 10 if the input is the output, else the input's first element.
static PROBE: KernelDef =
    elementwise("probe", &[KernelParameter::Out(DType::F32), KernelParameter::In(DType::F32)], |args| {
        let value = args.inputs[0].bytes.map_or(10.0, |x| bytemuck::cast_slice::<u8, f32>(x)[0]);
        floats_mut(args.outputs[0].bytes)[0] = value;
        Ok(())
    });

#[test]
fn an_input_that_is_the_output_is_read_from_it_and_one_that_overlaps_it_faults() {
    let rig = Rig::one();
    let stream = StreamId::default_of(0);
    let x = rig.device_floats(8, 3.0);
    let second = DevicePtr(x.0 + 4);
    let beyond = DevicePtr(x.0 + 16);
    for (input, expected) in [
        (tensor(x, 4), 10.0),
        (tensor(beyond, 4), 3.0),
        (Argument::Value([0, 0, 0xa0, 0x40, 0, 0, 0, 0]), 5.0),
    ] {
        rig.gpu.launch(stream, launch(&PROBE, &[tensor(x, 4), input], 1)).unwrap();
        assert_eq!(rig.read_device(x, 1), [expected]);
    }
    // The second input is another view of the same memory.
    for input in [tensor(second, 4), tensor(x, 3)] {
        let rig = Rig::one();
        assert_eq!(rig.device_floats(8, 3.0), x);
        rig.gpu.launch(stream, launch(&PROBE, &[tensor(x, 4), input], 1)).unwrap();
        assert_eq!(rig.gpu.synchronize(0), Err(errors::illegal_address()));
    }
}

static TWO_OUTPUTS: KernelDef = elementwise(
    "two_outputs",
    &[KernelParameter::Out(DType::F32), KernelParameter::Out(DType::F32)],
    |args| {
        let [a, b] = args.outputs else { unreachable!("it has two") };
        floats_mut(a.bytes).fill(1.0);
        floats_mut(b.bytes).fill(2.0);
        Ok(())
    },
);

#[test]
fn two_outputs_are_two_and_must_not_overlap() {
    let rig = Rig::one();
    let stream = StreamId::default_of(0);
    let x = rig.device_floats(4, 0.0);
    let at = |index: u64| tensor(DevicePtr(x.0 + 4 * index), 2);
    rig.gpu.launch(stream, launch(&TWO_OUTPUTS, &[at(2), at(0)], 1)).unwrap();
    assert_eq!(rig.read_device(x, 4), [2.0, 2.0, 1.0, 1.0]);
    rig.gpu.launch(stream, launch(&TWO_OUTPUTS, &[at(0), at(1)], 1)).unwrap();
    assert_eq!(rig.gpu.synchronize(0), Err(errors::illegal_address()));
}

#[test]
fn views_reach_as_far_as_their_strides() {
    let rig = Rig::one();
    let x = rig.device_floats(8, 3.0);
    let column = Layout::contiguous(&[4, 2]).unwrap().slice(1, 0, 1, 1);
    let at = |offset: u64| Argument::Tensor { pointer: DevicePtr(x.0 + offset), view: column };
    let stream = StreamId::default_of(0);
    rig.gpu.launch(stream, launch(&NOTHING, &[at(4)], 1)).unwrap();
    rig.gpu.synchronize(0).unwrap();
    rig.gpu.launch(stream, launch(&NOTHING, &[at(8)], 1)).unwrap();
    assert!(rig.gpu.synchronize(0).is_err());
}

static PANICS: KernelDef =
    elementwise("panics", &[KernelParameter::Out(DType::F32)], |_| panic!("a test of panics"));

#[test]
fn a_twin_that_panics_is_a_failed_launch() {
    let rig = Rig::one();
    let x = rig.device_floats(4, 0.0);
    rig.gpu.launch(StreamId::default_of(0), launch(&PANICS, &[tensor(x, 4)], 1)).unwrap();
    let error = rig.gpu.synchronize(0).unwrap_err();
    assert_eq!((error.code, error.message), (719, "unspecified launch failure"));
    assert_eq!(error.detail.as_deref(), Some("panics_f32 panicked"));
    assert_eq!(rig.gpu.free(0, x), Err(error));
}
