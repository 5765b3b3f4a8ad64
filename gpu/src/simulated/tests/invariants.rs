//! Tests of properties of every program.

use std::collections::BTreeMap;

use super::*;

struct Trace {
    spans: Vec<Span>,
    blocking: Vec<StreamId>,
    waits: Vec<Wait>,
}

/// Work of `stream` after number `after` waited for that of `recorded` up to number `up_to`.
struct Wait {
    stream: StreamId,
    after: OpId,
    recorded: StreamId,
    up_to: OpId,
}

/// Runs a pseudo-random program: kernels, fills, copies and events, on streams of both kinds and two devices.
fn program(seed: u64) -> Trace {
    let rig = Rig::new(SimulatedOptions { count: 2, seed: Some(seed), ..options() });
    let gpu = &rig.gpu;
    let count = 1 << 16;
    let memory = [0, 1].map(|device| rig.device_floats_on(device, count, 0.0));
    let host = rig.pinned_floats(&vec![0.0; count]);
    let mut blocking = vec![StreamId::default_of(0), StreamId::default_of(1)];
    let mut streams = blocking.clone();
    for device in [0, 0, 1, 1] {
        blocking.push(gpu.stream_create(device, true).unwrap());
        streams.extend([blocking[blocking.len() - 1], gpu.stream_create(device, false).unwrap()]);
    }
    let events = [0, 1].map(|device| gpu.event_create(device, true).unwrap());
    let mut recorded = [None; 2];
    let mut waits = Vec::new();
    let mut latest = 0;
    rig.spans();

    let mut random = seed;
    let mut below = |limit: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % limit
    };
    for _ in 0..400 {
        let stream = streams[below(streams.len())];
        let (pointer, bytes) = (memory[stream.device], below(count) * 4);
        match below(6) {
            0 => latest = rig.fill(stream, pointer, count, 1.0, below(60) as u64),
            1 => latest = gpu.memset(stream, pointer, 0, bytes).unwrap(),
            2 => latest = gpu.copy_host_to_device(stream, pointer, HostSource::Pinned(host), bytes).unwrap(),
            3 => latest = gpu.copy_device_to_host(stream, HostTarget::Pinned(host), pointer, bytes).unwrap(),
            4 => {
                gpu.event_record(events[stream.device], stream).unwrap();
                recorded[stream.device] = Some((stream, latest));
            }
            _ => {
                let event = below(2);
                gpu.stream_wait_event(stream, events[event]).unwrap();
                let wait = |(recorded, up_to)| Wait { stream, after: latest, recorded, up_to };
                waits.extend(recorded[event].map(wait));
            }
        }
    }
    gpu.synchronize(0).unwrap();
    gpu.synchronize(1).unwrap();
    Trace { spans: rig.spans(), blocking, waits }
}

#[test]
fn streams_are_in_order_and_engines_do_one_thing_at_a_time() {
    for seed in 0..10 {
        let Trace { spans, .. } = program(seed);
        let mut in_order = spans.clone();
        in_order.sort_by_key(|span| span.op);
        let (mut streams, mut engines) = (BTreeMap::new(), BTreeMap::new());
        for span in &in_order {
            let before = streams.insert(span.stream, span.end).unwrap_or(0);
            assert!(before <= span.start && span.start < span.end, "{span:?}");
        }
        for span in &spans {
            let before = engines.insert((span.stream.device, span.engine), span.end).unwrap_or(0);
            assert!(before <= span.start, "{span:?}");
        }
    }
}

#[test]
fn what_waits_for_an_event_begins_after_what_it_recorded() {
    for seed in 0..10 {
        let Trace { spans, waits, .. } = program(seed);
        assert!(waits.len() > 20);
        for wait in waits {
            let recorded = spans.iter().filter(|span| span.stream == wait.recorded && span.op <= wait.up_to);
            let end = recorded.map(|span| span.end).max().unwrap_or(0);
            let mut waited = spans.iter().filter(|span| span.stream == wait.stream && span.op > wait.after);
            assert!(waited.all(|span| span.start >= end));
        }
    }
}

#[test]
fn the_default_stream_keeps_order_with_every_blocking_one() {
    for seed in 0..10 {
        let Trace { spans, blocking, .. } = program(seed);
        for default in spans.iter().filter(|span| span.stream.number == 0) {
            let others = spans.iter().filter(|span| blocking.contains(&span.stream));
            for other in others.filter(|span| span.stream.device == default.stream.device) {
                let (first, second) = if default.op < other.op { (default, other) } else { (other, default) };
                assert!(first.op == second.op || first.end <= second.start, "{first:?} {second:?}");
            }
        }
    }
}
