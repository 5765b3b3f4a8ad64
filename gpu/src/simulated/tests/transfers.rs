//! Tests of copies between host and device.

use super::*;
use crate::each_case::each_case;

const COUNT: usize = 4096;

fn to_host(rig: &Rig, stream: StreamId, to: PinnedPtr, from: DevicePtr, count: usize) {
    rig.gpu.copy_device_to_host(stream, HostTarget::Pinned(to), from, count * 4).unwrap();
}

#[test]
fn a_pinned_buffer_read_before_synchronization_is_stale_and_fresh_after() {
    let rig = Rig::one();
    let (device, stream) = (rig.device_floats(COUNT, 2.0), StreamId::default_of(0));
    let host = rig.pinned_floats(&[-1.0; COUNT]);
    to_host(&rig, stream, host, device, COUNT);
    assert_eq!(rig.read_pinned(host, COUNT), [-1.0; COUNT]);
    rig.gpu.stream_synchronize(stream).unwrap();
    assert_eq!(rig.read_pinned(host, COUNT), [2.0; COUNT]);
}

#[test]
fn a_source_overwritten_during_a_copy_tears() {
    let rig = Rig::one();
    let (device, stream) = (rig.device_floats(COUNT, 0.0), StreamId::default_of(0));
    let host = rig.pinned_floats(&[1.0; COUNT]);
    rig.gpu.copy_host_to_device(stream, device, HostSource::Pinned(host), COUNT * 4).unwrap();
    // The copy starts 6 µs from now and takes 2 µs and 16 KiB at 12 GB/s: 3.4 µs, an eighth every 420 ns.
    rig.clock.advance(6 * MICROSECOND + 1_300);
    rig.gpu.write_host(host, bytemuck::cast_slice(&[9.0f32; COUNT])).unwrap();
    let values = rig.read_device(device, COUNT);
    assert_eq!((count_of(&values, 1.0), count_of(&values, 9.0)), (1536, 2560));
    assert!(values[..1536].iter().all(|value| *value == 1.0));
}

#[test]
fn pinned_contents_are_read_when_the_copy_runs_and_kernel_arguments_when_it_is_queued() {
    let rig = Rig::one();
    let (device, stream) = (rig.device_floats(4, 0.0), StreamId::default_of(0));
    let host = rig.pinned_floats(&[1.0; 4]);
    let mut number = 5.0f32;
    rig.fill(stream, device, 2, number, 100);
    rig.gpu.copy_host_to_device(stream, DevicePtr(device.0 + 8), HostSource::Pinned(host), 8).unwrap();
    number += 1.0;
    rig.gpu.write_host(host, bytemuck::cast_slice(&[number; 4])).unwrap();
    assert_eq!(rig.read_device(device, 4), [5.0, 5.0, 6.0, 6.0]);
}

/// The part of a kernel's result that a copy on another stream finds, with or without an event.
fn unordered_copy(seed: Option<u64>, event: bool) -> (usize, usize) {
    const COUNT: usize = 1 << 18;
    let rig = Rig::new(SimulatedOptions { seed, ..options() });
    let device = rig.device_floats(COUNT, 1.0);
    let host = rig.pinned_floats(&vec![0.0; COUNT]);
    let (compute, copy) = (rig.stream(false), rig.stream(false));
    rig.fill(compute, device, COUNT, 2.0, 55);
    if event {
        let event = rig.event();
        rig.gpu.event_record(event, compute).unwrap();
        rig.gpu.stream_wait_event(copy, event).unwrap();
    }
    to_host(&rig, copy, host, device, COUNT);
    rig.gpu.synchronize(0).unwrap();
    let values = rig.read_pinned(host, COUNT);
    (count_of(&values, 1.0), count_of(&values, 2.0))
}

#[test]
fn an_unordered_copy_is_torn_the_same_way_every_time_and_otherwise_with_another_seed() {
    let (old, new) = unordered_copy(None, false);
    assert!(old > 0 && new > 0 && old + new == 1 << 18, "{old} {new}");
    assert_eq!(unordered_copy(None, false), (old, new));
    let seeded: Vec<(usize, usize)> = (0..8).map(|seed| unordered_copy(Some(seed), false)).collect();
    assert!(seeded.iter().any(|torn| *torn != (old, new)));
    assert_eq!(unordered_copy(Some(3), false), seeded[3]);
}

#[test]
fn an_event_makes_it_whole() {
    each_case([None, Some(1), Some(99)], |seed| {
        assert_eq!(unordered_copy(seed, true), (0, 1 << 18));
    });
}

#[test]
fn a_large_pageable_copy_waits_for_its_stream_blocks_the_host_and_snapshots() {
    let rig = Rig::one();
    let count = 1 << 18;
    let (device, stream) = (rig.device_floats(count, 0.0), rig.stream(false));
    rig.fill(stream, device, 1, 3.0, 500);
    let mut source = vec![1.0f32; count];
    let before = rig.clock.now();
    let from = HostSource::Pageable(bytemuck::cast_slice(&source));
    rig.gpu.copy_host_to_device(stream, device, from, count * 4).unwrap();
    source.fill(9.0);
    // 500 µs for the kernel, then 1 MiB at 5 GB/s.
    let blocked = rig.clock.now() - before;
    assert!((700 * MICROSECOND..750 * MICROSECOND).contains(&blocked), "{blocked}");
    assert!(!rig.gpu.stream_query(stream).unwrap(), "the engine is a little behind the host");
    rig.gpu.stream_synchronize(stream).unwrap();
    assert_eq!(rig.read_device(device, count), vec![1.0; count]);
}

#[test]
fn a_small_pageable_copy_snapshots_and_does_not_wait_for_its_stream() {
    let rig = Rig::one();
    let (device, stream) = (rig.device_floats(COUNT, 0.0), StreamId::default_of(0));
    rig.fill(stream, device, COUNT, 3.0, 500);
    let mut source = vec![1.0f32; COUNT];
    let before = rig.clock.now();
    let from = HostSource::Pageable(bytemuck::cast_slice(&source));
    rig.gpu.copy_host_to_device(stream, device, from, COUNT * 4).unwrap();
    source.fill(9.0);
    assert!(rig.clock.now() - before < 10 * MICROSECOND);
    assert_eq!(rig.read_device(device, COUNT), [1.0; COUNT], "in order with the stream");
}

#[test]
fn a_pageable_copy_to_the_host_is_complete_when_it_returns() {
    let rig = Rig::one();
    let (device, stream) = (rig.device_floats(COUNT, 1.0), rig.stream(false));
    rig.fill(stream, device, COUNT, 2.0, 300);
    let mut target = vec![0.0f32; COUNT];
    let before = rig.clock.now();
    let to = HostTarget::Pageable(bytemuck::cast_slice_mut(&mut target));
    rig.gpu.copy_device_to_host(stream, to, device, COUNT * 4).unwrap();
    assert_eq!(target, [2.0; COUNT]);
    assert!(rig.clock.now() - before > 300 * MICROSECOND);
}

#[test]
fn a_pinned_buffer_given_back_in_flight_lives_until_the_copy_has_run() {
    let rig = Rig::one();
    let (device, stream) = (rig.device_floats(COUNT, 0.0), StreamId::default_of(0));
    let host = rig.pinned_floats(&[4.0; COUNT]);
    rig.fill(stream, device, 1, 0.0, 1_000);
    rig.gpu.copy_host_to_device(stream, device, HostSource::Pinned(host), COUNT * 4).unwrap();
    rig.gpu.free_host(host).unwrap();
    assert_eq!(rig.gpu.free_host(host), Err(errors::invalid_value()));
    assert_eq!(rig.gpu.read_host(host, &mut [0]), Err(errors::invalid_value()), "it has no owner");
    let other = rig.gpu.state().pinned.take(COUNT * 4).unwrap();
    assert_ne!(other, host.0, "its address is not given out again before");
    assert_eq!(rig.gpu.state().pinned.count(), 2);
    assert_eq!(rig.read_device(device, COUNT), [4.0; COUNT]);
    assert_eq!(rig.gpu.state().pinned.count(), 1);
}

#[test]
fn both_directions_and_a_kernel_run_at_once() {
    let rig = Rig::one();
    let count = 1 << 20;
    let (a, b, c) =
        (rig.device_floats(count, 0.0), rig.device_floats(count, 0.0), rig.device_floats(count, 0.0));
    let (up, down) = (rig.pinned_floats(&vec![1.0; count]), rig.pinned_floats(&vec![1.0; count]));
    let streams = [rig.stream(false), rig.stream(false), rig.stream(false)];
    rig.spans();
    rig.gpu.copy_host_to_device(streams[0], a, HostSource::Pinned(up), count * 4).unwrap();
    to_host(&rig, streams[1], down, b, count);
    rig.fill(streams[2], c, count, 1.0, 300);
    rig.gpu.synchronize(0).unwrap();
    let spans = rig.spans();
    let engines: Vec<Engine> = spans.iter().map(|span| span.engine).collect();
    assert_eq!(engines, [Engine::Compute, Engine::DeviceToHost, Engine::HostToDevice]);
    let latest_start = spans.iter().map(|span| span.start).max().unwrap();
    assert!(spans.iter().all(|span| span.end > latest_start));
}

#[test]
fn copies_of_one_direction_share_an_engine() {
    let rig = Rig::one();
    let count = 1 << 20;
    let device = rig.device_floats(count, 0.0);
    let host = rig.pinned_floats(&vec![1.0; count]);
    let streams = [rig.stream(false), rig.stream(false)];
    rig.spans();
    for stream in streams {
        rig.gpu.copy_host_to_device(stream, device, HostSource::Pinned(host), count * 4).unwrap();
    }
    rig.gpu.synchronize(0).unwrap();
    let spans = rig.spans();
    assert_eq!(spans[1].start, spans[0].end);
}

#[test]
fn copies_within_a_device_and_fills_run_in_order() {
    let rig = Rig::one();
    let (a, b) = (rig.device_floats(100, 1.0), rig.device_floats(100, 2.0));
    let stream = StreamId::default_of(0);
    rig.gpu.copy_peer(stream, (0, b), (0, a), 200).unwrap();
    rig.gpu.memset(stream, a, 0, 400).unwrap();
    let copied = rig.read_device(b, 100);
    assert_eq!((count_of(&copied, 1.0), count_of(&copied, 2.0)), (50, 50));
    assert_eq!(rig.read_device(a, 100), [0.0; 100]);
}

#[test]
fn empty_copies_are_fine_and_wrong_ranges_are_refused_at_once() {
    let rig = Rig::one();
    let (device, stream) = (rig.device_floats(4, 0.0), StreamId::default_of(0));
    let host = rig.pinned_floats(&[1.0; 4]);
    rig.gpu.copy_host_to_device(stream, DevicePtr(0), HostSource::Pageable(&[]), 0).unwrap();
    to_host(&rig, stream, PinnedPtr(0), DevicePtr(0), 0);
    rig.gpu.memset(stream, DevicePtr(0), 1, 0).unwrap();
    let invalid = Err(errors::invalid_value());
    assert_eq!(rig.gpu.copy_host_to_device(stream, device, HostSource::Pinned(host), 17), invalid);
    assert_eq!(rig.gpu.copy_host_to_device(stream, device, HostSource::Pageable(&[0; 3]), 4), invalid);
    assert_eq!(rig.gpu.copy_device_to_host(stream, HostTarget::Pinned(PinnedPtr(64)), device, 4), invalid);
    assert_eq!(rig.gpu.memset(stream, DevicePtr(device.0 + 1), 0, 16), invalid);
    rig.gpu.synchronize(0).unwrap();
}

/// A program may keep the contents of all memory itself. Times, memory and errors are the same, and no byte moves.
#[test]
fn without_contents_everything_takes_the_same_time_and_no_byte_moves() {
    const BYTES: usize = 1 << 20;
    let ran = |without_contents: bool| {
        let rig =
            Rig::new(SimulatedOptions { setup: Setup { without_contents, ..Setup::default() }, ..options() });
        let stream = StreamId::default_of(0);
        let [a, b] = [(); 2].map(|()| rig.gpu.malloc(0, BYTES).unwrap());
        let pinned = rig.gpu.malloc_host(BYTES).unwrap();
        let mut bytes = vec![7; BYTES];
        rig.gpu.memset(stream, a, 1, BYTES).unwrap();
        rig.gpu.copy_host_to_device(stream, a, HostSource::Pageable(&bytes), BYTES).unwrap();
        rig.gpu.copy_host_to_device(stream, b, HostSource::Pinned(pinned), BYTES).unwrap();
        rig.gpu.copy_peer(stream, (0, b), (0, a), BYTES).unwrap();
        bytes.fill(0);
        rig.gpu.copy_device_to_host(stream, HostTarget::Pinned(pinned), b, BYTES).unwrap();
        rig.gpu.copy_device_to_host(stream, HostTarget::Pageable(&mut bytes), b, BYTES).unwrap();
        let outside = rig.gpu.memset(stream, a, 1, BYTES + 1).unwrap_err();
        let free = rig.gpu.memory_info(0).unwrap().free;
        rig.gpu.free_host(pinned).unwrap();
        rig.gpu.free(0, a).unwrap();
        ((rig.clock.now(), outside, free), bytes)
    };
    let [(with, moved), (without, left)] = [false, true].map(ran);
    assert_eq!(with, without);
    assert_eq!((moved, left), (vec![7; BYTES], vec![0; BYTES]));
    let rig = Rig::new(SimulatedOptions {
        memory: Some(1 << 50),
        setup: Setup { without_contents: true, ..Setup::default() },
        ..options()
    });
    assert!(rig.gpu.malloc(0, 1 << 45).is_ok(), "more than any computer has");
}
