//! Tests of streams, events and the host's waits.

use super::*;

#[test]
fn work_of_a_stream_runs_in_order_and_later_than_the_call() {
    let rig = Rig::one();
    let (device, stream) = (rig.device_floats(8, 0.0), rig.stream(false));
    rig.spans();
    let ops: Vec<OpId> = (1..=3).map(|value| rig.fill(stream, device, 8, value as f32, 100)).collect();
    assert!(rig.spans().is_empty(), "nothing has run when the calls return");
    let called = rig.clock.now();
    rig.gpu.stream_synchronize(stream).unwrap();
    let spans = rig.spans();
    assert_eq!(spans.iter().map(|span| span.op).collect::<Vec<_>>(), ops);
    for pair in spans.windows(2) {
        assert_eq!(pair[1].start, pair[0].end + MICROSECOND, "the gap between kernels");
    }
    assert_eq!(spans[0].start, called - 10 * MICROSECOND + 6 * MICROSECOND, "the first call and its latency");
    assert_eq!(rig.clock.now(), spans[2].end);
    assert_eq!(rig.read_device(device, 8), [3.0; 8]);
}

#[test]
fn a_kernel_has_no_effect_before_its_end() {
    let rig = Rig::one();
    let (device, compute, copy) = (rig.device_floats(8, 1.0), rig.stream(false), rig.stream(false));
    let host = rig.pinned_floats(&[0.0; 8]);
    rig.fill(compute, device, 8, 2.0, 500);
    rig.gpu.copy_device_to_host(copy, HostTarget::Pinned(host), device, 32).unwrap();
    rig.gpu.stream_synchronize(copy).unwrap();
    assert_eq!(rig.read_pinned(host, 8), [1.0; 8]);
    assert!(!rig.gpu.stream_query(compute).unwrap());
}

#[test]
fn the_default_stream_waits_for_blocking_streams_only() {
    let rig = Rig::one();
    let host = rig.pinned_floats(&[-1.0]);
    let found = |blocking| {
        let (x, side) = (rig.device_floats(1, 0.0), rig.stream(blocking));
        rig.fill(side, x, 1, 1.0, 200);
        let default = StreamId::default_of(0);
        rig.gpu.copy_device_to_host(default, HostTarget::Pinned(host), x, 4).unwrap();
        rig.gpu.stream_synchronize(default).unwrap();
        rig.read_pinned(host, 1)[0]
    };
    assert_eq!((found(true), found(false)), (1.0, 0.0));
}

#[test]
fn blocking_streams_wait_for_the_default_stream_and_not_for_each_other() {
    let rig = Rig::one();
    let host = rig.pinned_floats(&[-1.0; 3]);
    let x = rig.device_floats(1, 0.0);
    let (a, b, free) = (rig.stream(true), rig.stream(true), rig.stream(false));
    rig.fill(StreamId::default_of(0), x, 1, 1.0, 200);
    let copy = |stream, index: u64| {
        let to = HostTarget::Pinned(PinnedPtr(host.0 + 4 * index));
        rig.gpu.copy_device_to_host(stream, to, x, 4).unwrap();
    };
    copy(a, 0);
    copy(free, 1);
    rig.gpu.synchronize(0).unwrap();
    rig.fill(a, x, 1, 2.0, 200);
    copy(b, 2);
    rig.gpu.synchronize(0).unwrap();
    assert_eq!(rig.read_pinned(host, 3), [1.0, 0.0, 1.0]);
}

#[test]
fn an_event_records_the_last_time_and_a_wait_what_it_had_recorded_when_called() {
    let rig = Rig::one();
    let (x, a, b, event) = (rig.device_floats(1, 0.0), rig.stream(false), rig.stream(false), rig.event());
    let host = rig.pinned_floats(&[-1.0]);
    rig.fill(a, x, 1, 1.0, 100);
    rig.gpu.event_record(event, a).unwrap();
    rig.gpu.stream_wait_event(b, event).unwrap();
    rig.fill(a, x, 1, 2.0, 1_000);
    rig.gpu.event_record(event, a).unwrap();
    rig.gpu.copy_device_to_host(b, HostTarget::Pinned(host), x, 4).unwrap();
    rig.gpu.stream_synchronize(b).unwrap();
    assert_eq!(rig.read_pinned(host, 1), [1.0]);
    assert!(!rig.gpu.event_query(event).unwrap());
    rig.gpu.event_synchronize(event).unwrap();
    assert!(rig.gpu.event_query(event).unwrap());
    assert_eq!(rig.read_device(x, 1), [2.0]);
}

#[test]
fn an_event_never_recorded_is_waited_for_by_nobody() {
    let rig = Rig::one();
    let (stream, event) = (rig.stream(false), rig.event());
    rig.gpu.stream_wait_event(stream, event).unwrap();
    assert!(rig.gpu.stream_query(stream).unwrap());
    assert!(rig.gpu.event_query(event).unwrap());
    rig.gpu.event_synchronize(event).unwrap();
}

#[test]
fn polling_an_event_ends() {
    let rig = Rig::one();
    let (x, stream, event) = (rig.device_floats(1, 0.0), rig.stream(false), rig.event());
    rig.fill(stream, x, 1, 1.0, 100);
    rig.gpu.event_record(event, stream).unwrap();
    let polls = (0..10_000).take_while(|_| !rig.gpu.event_query(event).unwrap()).count();
    assert!((100..200).contains(&polls), "{polls}");
}

#[test]
fn events_time_the_work_between_them() {
    let rig = Rig::one();
    let (x, stream) = (rig.device_floats(1, 0.0), rig.stream(false));
    let (start, end) = (rig.event(), rig.event());
    assert_eq!(rig.gpu.event_elapsed(start, end), Err(errors::invalid_handle()));
    rig.gpu.event_record(start, stream).unwrap();
    rig.fill(stream, x, 1, 1.0, 2_000);
    rig.gpu.event_record(end, stream).unwrap();
    let early = rig.gpu.event_elapsed(start, end).unwrap_err();
    assert_eq!((early.name, early.message), ("cudaErrorNotReady", "device not ready"));
    rig.gpu.event_synchronize(end).unwrap();
    let elapsed = rig.gpu.event_elapsed(start, end).unwrap();
    assert!((2.0..2.02).contains(&elapsed), "{elapsed}");
    assert!((rig.gpu.event_elapsed(end, start).unwrap() + elapsed).abs() < 1e-6);

    let untimed = rig.gpu.event_create(0, false).unwrap();
    rig.gpu.event_record(untimed, stream).unwrap();
    rig.gpu.event_synchronize(untimed).unwrap();
    let error = rig.gpu.event_elapsed(start, untimed).unwrap_err();
    assert_eq!((error.code, error.message), (400, "invalid resource handle"));
}

#[test]
fn a_destroyed_event_is_invalid_and_its_work_still_runs() {
    let rig = Rig::one();
    let (x, stream, event) = (rig.device_floats(1, 0.0), rig.stream(false), rig.event());
    rig.fill(stream, x, 1, 1.0, 100);
    rig.gpu.event_record(event, stream).unwrap();
    rig.gpu.event_destroy(event).unwrap();
    let other = rig.event();
    assert_ne!(other, event);
    assert_eq!(rig.gpu.event_query(event), Err(errors::invalid_handle()));
    rig.gpu.synchronize(0).unwrap();
    assert_eq!(rig.read_device(x, 1), [1.0]);
    assert!(rig.gpu.event_query(other).unwrap(), "the old record is not the new event's");
}

#[test]
fn malloc_free_and_page_locking_wait_for_the_device() {
    let rig = Rig::one();
    let (x, stream) = (rig.device_floats(1, 0.0), rig.stream(false));
    let idle = || rig.gpu.stream_query(stream).unwrap();
    rig.fill(stream, x, 1, 1.0, 5_000);
    assert!(!idle());
    let y = rig.gpu.malloc(0, 100).unwrap();
    assert!(idle());
    rig.fill(stream, x, 1, 2.0, 5_000);
    rig.gpu.free(0, y).unwrap();
    assert!(idle());
    rig.fill(stream, x, 1, 3.0, 5_000);
    rig.gpu.malloc_host(100).unwrap();
    assert!(idle());
}

#[test]
fn a_freed_block_was_still_there_for_the_work_queued_before() {
    let rig = Rig::one();
    let (x, y) = (rig.device_floats(4, 1.0), rig.device_floats(4, 0.0));
    let stream = rig.stream(false);
    rig.gpu.launch(stream, launch(&ADD_ONE, &[tensor(x, 4), tensor(y, 4)], 1_000)).unwrap();
    rig.gpu.free(0, x).unwrap();
    assert_eq!(rig.read_device(y, 4), [2.0; 4]);
}

#[test]
fn memory_reused_in_stream_order_is_right_and_across_streams_is_not() {
    let rig = Rig::one();
    let host = rig.pinned_floats(&[0.0]);
    let read_then_reuse = |reader: StreamId, writer: StreamId| {
        let block = rig.device_floats(1, 1.0);
        let busy = rig.device_floats(1, 0.0);
        rig.fill(reader, busy, 1, 0.0, 300);
        rig.gpu.copy_device_to_host(reader, HostTarget::Pinned(host), block, 4).unwrap();
        rig.gpu.memset(writer, block, 0, 4).unwrap(); // Its next owner.
        rig.gpu.synchronize(0).unwrap();
        rig.read_pinned(host, 1)[0]
    };
    let (a, b) = (rig.stream(false), rig.stream(false));
    assert_eq!(read_then_reuse(a, a), 1.0);
    let copy_engine_is_late = {
        let block = rig.device_floats(1, 1.0);
        let large = rig.device_floats(1 << 20, 0.0);
        let sink = rig.pinned_floats(&vec![0.0; 1 << 20]);
        rig.gpu.copy_device_to_host(a, HostTarget::Pinned(sink), large, 4 << 20).unwrap();
        rig.gpu.copy_device_to_host(a, HostTarget::Pinned(host), block, 4).unwrap();
        rig.gpu.memset(b, block, 0, 4).unwrap();
        rig.gpu.synchronize(0).unwrap();
        rig.read_pinned(host, 1)[0]
    };
    assert_eq!(copy_engine_is_late, 0.0);
}

#[test]
fn the_launch_queue_holds_1024_and_then_the_host_waits() {
    let rig = Rig::one();
    let (x, stream) = (rig.device_floats(1, 0.0), rig.stream(false));
    rig.fill(stream, x, 1, 0.0, 100_000);
    let cost_of_a_launch = || {
        let before = rig.clock.now();
        rig.fill(stream, x, 1, 1.0, 100);
        rig.clock.now() - before
    };
    for _ in 1..1024 {
        assert_eq!(cost_of_a_launch(), 5 * MICROSECOND);
    }
    assert!(cost_of_a_launch() > 90_000 * MICROSECOND, "it waits for the first");
    let next = cost_of_a_launch();
    assert!((90 * MICROSECOND..110 * MICROSECOND).contains(&next), "and now at the device's pace: {next}");
}

#[test]
fn a_wait_for_work_that_can_never_run_is_an_error() {
    let rig = Rig::one();
    let (a, b) = (rig.stream(false), rig.stream(false));
    {
        let mut state = rig.gpu.state();
        let index = state.devices[0].streams[a.number as usize];
        let other = state.devices[0].streams[b.number as usize];
        // Each stream first needs work, so that the other has something to wait for.
        for (stream, other) in [(index, other), (other, index)] {
            state.submit(stream, None, 0, Task::Record(EventId(0))).unwrap();
            state.submit(stream, None, 0, Task::Wait { stream: other, op: 1_000, asked: 0 }).unwrap();
        }
    }
    let error = rig.gpu.synchronize(0).unwrap_err();
    let detail = error.detail.unwrap();
    assert!(detail.starts_with("deadlock: the first work of stream 1 of device 0"), "{detail}");
}

#[test]
fn the_same_program_takes_the_same_times() {
    let program = |seed| {
        let rig = Rig::new(SimulatedOptions { seed, ..options() });
        let (x, y) = (rig.device_floats(1000, 0.0), rig.device_floats(1000, 0.0));
        let host = rig.pinned_floats(&[0.0; 1000]);
        let (a, b, event) = (rig.stream(false), rig.stream(true), rig.event());
        for round in 0..20 {
            rig.fill(a, x, 1000, round as f32, round * 7);
            rig.gpu.event_record(event, a).unwrap();
            rig.gpu.launch(b, launch(&ADD_ONE, &[tensor(y, 1000), tensor(y, 1000)], 13)).unwrap();
            rig.gpu.stream_wait_event(b, event).unwrap();
            rig.gpu.copy_device_to_host(b, HostTarget::Pinned(host), x, 4000).unwrap();
            rig.gpu.memset(StreamId::default_of(0), y, 1, 4000).unwrap();
        }
        rig.gpu.synchronize(0).unwrap();
        (rig.spans(), rig.clock.now())
    };
    assert_eq!(program(None), program(None));
    assert_eq!(program(Some(5)), program(Some(5)));
    assert_ne!(program(Some(5)), program(Some(6)));
}
